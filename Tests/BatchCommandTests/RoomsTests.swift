import BatchTestSupport
import Foundation
import Testing

/// What may know of what: modules depend one way, and so do the folders within them.
@Suite struct RoomsTests {
  /// The modules of this project that each of them may import.
  private static let imports: [String: Set<String>] = [
    "BatchPlatform": [],
    "BatchIdentifiers": ["BatchPlatform", "CLZ4"],
    "BatchParquet": ["CLZ4"],
    "BatchRuns": ["BatchPlatform", "BatchIdentifiers", "BatchParquet", "CZlib", "CZstd"],
    "BatchJobs": [
      "BatchPlatform", "BatchIdentifiers", "BatchParquet", "BatchRuns", "CSpawn",
    ],
    "BatchSQLite": [
      "BatchPlatform", "BatchIdentifiers", "BatchRuns", "BatchJobs", "CSQLite",
    ],
    "BatchPostgres": [
      "BatchPlatform", "BatchIdentifiers", "BatchRuns", "BatchJobs", "CPostgres",
    ],
    "BatchObjects": [
      "BatchPlatform", "BatchIdentifiers", "BatchRuns", "BatchJobs", "BatchSQLite",
      "BatchPipeline",
    ],
    "BatchMacroExpansions": [],
    "BatchMacros": ["BatchIdentifiers", "BatchObjects", "BatchSQLite"],
    "BatchPipeline": [
      "BatchPlatform", "BatchIdentifiers", "BatchRuns", "BatchJobs", "BatchSQLite",
      "BatchPostgres",
    ],
    "BatchTool": [
      "BatchPlatform", "BatchIdentifiers", "BatchRuns", "BatchJobs", "BatchSQLite",
      "BatchPipeline",
    ],
    "BatchCommand": ["BatchTool"],
  ]

  /// The folders of a module, each of which may use those before it.
  private static let folders: [String: [String]] = [
    "BatchIdentifiers": [
      "Support", "Errors", "FileSystem", "Keys", "Identifiers", "Codings", "Lists", "Files",
      "Text",
    ],
    "BatchRuns": [
      "Threads", "Policy", "Files", "Checkpoint", "Report", "Life", "Loop", "Rows", "Export",
      "Driver",
    ],
    "BatchJobs": [
      "JSON", "Problems", "Parameters", "Model", "Fingerprint", "Decoding", "Programs",
      "Load", "Export", "Plan", "Runs", "Report", "Operation",
    ],
    "BatchSQLite": [
      "SQLite", "Values", "Schema", "CoreData", "Expression", "Store", "Comparison", "Fetch",
      "Undo",
      "Writer", "Transform", "Restore", "Export", "Processors",
      "Load", "Jobs",
    ],
    "BatchPostgres": [
      "Connection", "Schema", "Expression", "Fetch", "Change", "Reading", "Transform", "Load",
      "Export",
      "Run", "Conditions", "Jobs", "Record",
    ],
    "BatchObjects": [
      "Model", "Container", "Predicate", "Fetch", "History", "Context", "Bulk", "Transform",
      "Run",
    ],
    "BatchPipeline": [
      "Checkpoint", "Report", "Run", "Undo", "Operation", "Verification", "Rehearsal",
      "Generation",
    ],
  ]

  /// The exceptions: edges that go up.
  private static let exceptions: [String: Set<String>] = [
    "BatchIdentifiers": [
      // The kinds of keys and the most of them, which are public as the list's.
      "Codings/SegmentCoding.swift uses IdentifierList"
    ],
    "BatchRuns": [
      // Its own `RunPolicy.Checkpoint`, which has the name of the file that it concerns.
      "Policy/RunPolicy.swift uses Checkpoint"
    ],
    "BatchSQLite": [
      // A connection keeps what was last verified by it.
      "SQLite/Connection.swift uses ExpectedSchema"
    ],
    "BatchObjects": [
      // An object has a weak reference to its context, and asks it for its row.
      "Model/ManagedObject.swift uses ModelContext",
      "Model/ObjectEnvironment.swift uses ModelContext",
    ],
  ]

  @Test func `a module imports only those below it`() throws {
    let names = try Repository.files(under: "Sources", extension: "swift")
    let modules = Set(names.compactMap { name in name.split(separator: "/").dropFirst().first })
    #expect(modules == Set(Self.imports.keys.map { $0[...] }))
    let own = try Set(
      FileManager.default.contentsOfDirectory(atPath: "\(Repository.path)/Sources")
    )
    for name in names {
      let module = String(name.split(separator: "/")[1])
      let imported = try SourceText(Repository.text(name)).imports.intersection(own)
      let excess = imported.subtracting(Self.imports[module, default: []])
      #expect(excess.isEmpty, "\(name) imports \(excess.sorted())")
    }
  }

  @Test(arguments: folders.keys.sorted())
  func `a folder uses only those before it`(module: String) throws {
    let order = try #require(Self.folders[module])
    var sources: [(folder: Int, name: String, text: SourceText)] = []
    for path in try Repository.files(under: "Sources/\(module)", extension: "swift") {
      let name = path.dropFirst("Sources/\(module)/".count)
      // What is exported from elsewhere belongs to no folder.
      if !name.contains("/") { continue }
      let folder = name.prefix { $0 != "/" }
      let place = try #require(order.firstIndex { $0 == folder }, "\(path) is in no known folder")
      sources.append((place, String(name), try SourceText(Repository.text(path))))
    }
    #expect(Set(sources.map(\.folder)) == Set(order.indices), "a folder is gone")

    // If a name is declared in several folders, the allowed one is assumed.
    var first: [String: Int] = [:]
    for source in sources {
      for type in source.text.types { first[type] = min(first[type] ?? .max, source.folder) }
    }
    var found: Set<String> = []
    for source in sources {
      for word in source.text.words where first[word] ?? 0 > source.folder {
        found.insert("\(source.name) uses \(word)")
      }
    }
    let known = Self.exceptions[module, default: []]
    #expect(found.subtracting(known).sorted() == [], "what is used belongs further down")
    #expect(known.subtracting(found).sorted() == [], "no exception any more")
  }

  @Test func `the words of a source are taken from code and not from comments or literals`() {
    let text = SourceText(
      #"""
      @safe public import Below  // Comment
      package final class Room<Value>: Door {
        let text = "Text \(Call("Inner")) // Text" /* Block */
        let lines = """
          Lines \(Other.name) "quoted" Lines
          """
        struct Nested {}
      }
      private enum Hidden {}
      """#
    )
    #expect(text.imports == ["Below"])
    #expect(text.types == ["Room", "Hidden"])
    let capitalized = text.words.filter { $0.first?.isUppercase == true }
    #expect(
      capitalized.sorted() == [
        "Below", "Call", "Door", "Hidden", "Nested", "Other", "Room", "Value",
      ]
    )
  }
}

/// The modules and types in a Swift source.
///
/// A scan, and no parser: regex and raw string literals are not known.
private struct SourceText {
  /// The modules that are imported.
  private(set) var imports: Set<String> = []
  /// The types that are declared at the left margin.
  private(set) var types: Set<String> = []
  /// All words of code.
  private(set) var words: Set<String> = []

  init(_ text: String) {
    let attributes: Set = [
      "@_exported", "@preconcurrency", "@safe", "@testable", "@usableFromInline",
    ]
    let modifiers: Set = [
      "public", "package", "internal", "fileprivate", "private", "open", "final", "indirect",
      "nonisolated",
    ]
    for line in text.split(separator: "\n") where line.first?.isWhitespace == false {
      let parts = line.split(separator: " ").drop {
        attributes.contains(String($0)) || modifiers.contains(String($0))
      }
      guard let keyword = parts.first, let second = parts.dropFirst().first else { continue }
      let name = String(second.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
      switch keyword {
      case "import": imports.insert(name)
      case "struct", "class", "enum", "actor", "protocol", "typealias": types.insert(name)
      default: continue
      }
    }
    findWords(Array(text.utf8))
  }

  private enum Place {
    /// Code at a given depth of parentheses since it began.
    case code(Int)
    /// A literal, and whether it is one of several lines.
    case literal(Bool)
  }

  private mutating func findWords(_ text: [UInt8]) {
    var places = [Place.code(0)]
    var index = 0
    func begins(_ part: StaticString) -> Bool {
      let end = index + part.utf8CodeUnitCount
      return end <= text.count && part.withUTF8Buffer { text[index..<end].elementsEqual($0) }
    }
    while index < text.count {
      switch places.last ?? .code(0) {
      case .literal(let hasLines):
        if begins("\\(") {
          places.append(.code(0))
          index += 2
        } else if begins("\\") {
          index += 2
        } else if hasLines ? begins("\"\"\"") : begins("\"") || begins("\n") {
          places.removeLast()
          index += hasLines ? 3 : 1
        } else {
          index += 1
        }
      case .code(let depth):
        if begins("//") {
          while index < text.count, !begins("\n") { index += 1 }
        } else if begins("/*") {
          while index < text.count, !begins("*/") { index += 1 }
        } else if begins("\"") {
          let hasLines = begins("\"\"\"")
          places.append(.literal(hasLines))
          index += hasLines ? 3 : 1
        } else if begins(")"), depth == 0, places.count > 1 {
          places.removeLast()
          index += 1
        } else if Self.isPartOfWord(text[index]) {
          let start = index
          while index < text.count, Self.isPartOfWord(text[index]) { index += 1 }
          words.insert(String(decoding: text[start..<index], as: UTF8.self))
        } else {
          if begins("(") { places[places.count - 1] = .code(depth + 1) }
          if begins(")") { places[places.count - 1] = .code(max(0, depth - 1)) }
          index += 1
        }
      }
    }
  }

  private static func isPartOfWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
