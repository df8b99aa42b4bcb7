import BatchTestSupport
import Foundation
import Testing

/// The libraries' public interface: the page that lists it, and a check that all of it is used.
@Suite struct PublicInterfaceTests {
  private static let page = "Documentation/API.md"
  private static let modules = [
    ("BatchPipeline", "Jobs and runs; `import BatchPipeline` brings all the others along."),
    ("BatchMacros", "Classes by macro, with the trait `Macros`."),
    ("BatchObjects", "Objects: models, predicates, containers, contexts, history, bulk requests."),
    ("BatchSQLite", "A SQLite database as a store of entities: schema, fetches, values, handlers."),
    ("BatchPostgres", "PostgreSQL as a store, with the trait `PostgreSQL`."),
    ("BatchJobs", "A job, as its file or a program has it."),
    ("BatchRuns", "A run from outside: its policy, its events, its progress; handlers of rows."),
    ("BatchParquet", "Rows as a Parquet file, from any sequence; no database."),
    ("BatchIdentifiers", "Identifiers, packed lists, their file; no database."),
  ]

  /// Names that are never written out: their results are used, or they complete a set.
  private static let implied: Set<String> = [
    "maximumMetadataByteCount", "maximumRecordByteCount", "maximumByteCount", "maximumCount",
    "maximumLineByteCount", "skipLimit", "currentVersion", "debugDescription", "endIndex",
    "enqueue",
    "exportFile", "forEachKey", "forEachRecord", "appendEncodedKeys", "isDescending", "isSecret",
    "lineCount", "isNull",
  ]

  /// Which bytes are of a name.
  private static let isPartOfWord = (0...255).map { byte in
    let character = Character(UnicodeScalar(UInt8(byte)))
    return byte >= 0x80 || character.isLetter || character.isNumber || character == "_"
  }

  private struct Symbol: Hashable {
    let type: String
    let kind: String
    let name: String
  }

  /// The public symbols of the modules, found once for all tests.
  private static let symbols = Result {
    try Dictionary(uniqueKeysWithValues: modules.map { ($0.0, try symbols(of: $0.0)) })
  }

  /// The keywords of lines with declarations: others need not be parsed.
  private static let keywords = [
    "struct", "class", "enum", "actor", "protocol", "extension", "typealias", "func", "var", "let",
    "init", "subscript", "case", "macro",
  ].map { Array($0.utf8) }

  /// Whether one of the first words of a line is a keyword that declares something.
  ///
  /// Attributes may have anything in parentheses, so a line with one is always parsed.
  private static func mayDeclare(_ text: Substring.UTF8View) -> Bool {
    guard let first = text.first, first != UInt8(ascii: "@") else { return true }
    return text.split(maxSplits: 8, omittingEmptySubsequences: true) { byte in
      !(UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }.contains { word in keywords.contains { $0.elementsEqual(word) } }
  }

  /// The public symbols of a module, with the types that they belong to.
  private static func symbols(of module: String) throws -> [Symbol] {
    var symbols: [Symbol] = []
    // Made once, and not for each line.
    let declaration =
      /(?:@\w+(?:\([^)]*\))?\s+)*((?:[a-z]+(?:\(set\))?\s+)*?)(struct|class|enum|actor|protocol|extension|typealias|func|var|let|init|subscript|case|macro)\b\s*`?([\w.]*)/
    for path in try Repository.files(under: "Sources/\(module)", extension: "swift").sorted() {
      var types: [(indent: Int, name: String)] = []
      for line in try Repository.text(path).split(separator: "\n") {
        let indent = line.utf8.prefix { $0 == UInt8(ascii: " ") }.count
        let bytes = line.utf8.dropFirst(indent)
        let slash = UInt8(ascii: "/")
        if bytes.isEmpty || bytes.starts(with: [slash, slash]) { continue }
        let text = Substring(bytes)
        while let last = types.last, last.indent >= indent, !text.hasPrefix(")") {
          types.removeLast()
        }
        guard
          mayDeclare(bytes),
          let match = text.prefixMatch(of: declaration)
        else { continue }
        let (modifiers, kind, name) = (
          match.output.1, String(match.output.2), String(match.output.3)
        )
        let outer = types.map(\.name).joined(separator: ".")
        if modifiers.contains("public") || modifiers.contains("open") {
          let shown = kind == "init" || kind == "subscript" ? kind : name
          // Operators are listed with what they come with, `Hashable` and the like.
          if !shown.isEmpty { symbols.append(Symbol(type: outer, kind: kind, name: shown)) }
        }
        if ["struct", "class", "enum", "actor", "protocol", "extension"].contains(kind) {
          types.append((indent, name))
        }
      }
    }
    return symbols
  }

  private static func list(_ names: some Sequence<String>) -> String {
    names.sorted().map { "`\($0)`" }.joined(separator: ", ")
  }

  @Test func `API.md lists the whole public interface`() throws {
    var text = """
      # The public interface

      Every public type with its members. Comments in the sources say what they do. The tests write this page.

      """
    for (module, what) in Self.modules {
      text += "\n## \(module)\n\n\(what)\n\n"
      var members: [String: Set<String>] = [:]
      for symbol in try Self.symbols.get()[module] ?? [] {
        let isType = ["struct", "class", "enum", "actor", "protocol", "typealias"].contains(
          symbol.kind
        )
        let owner = isType ? [symbol.type, symbol.name].filter { !$0.isEmpty } : [symbol.type]
        members[owner.joined(separator: "."), default: []].formUnion(isType ? [] : [symbol.name])
      }
      for (type, names) in members.sorted(by: { $0.key < $1.key }) where !names.isEmpty {
        text += "- **`\(type.isEmpty ? "functions" : type)`**: \(Self.list(names))\n"
      }
      let empty = members.filter { $0.value.isEmpty }.keys
      if !empty.isEmpty { text += "- without members: \(Self.list(empty))\n" }
    }
    if ProcessInfo.processInfo.environment["BATCH_WRITE_PAGES"] != nil {
      try text.write(
        toFile: "\(Repository.path)/\(Self.page)",
        atomically: true,
        encoding: .utf8
      )
    }
    #expect(try Repository.text(Self.page) == text, "BATCH_WRITE_PAGES=1 writes it anew")
  }

  @Test func `a test, an example or the command line uses each public function and property`()
    throws
  {
    // Bytes, since characters are looked up in tables one after the other; names are ASCII here.
    var words: Set<Substring> = []
    for folder in ["Tests", "Examples", "Sources/BatchTool", "Benchmarks/Sources"] {
      for path in try Repository.files(under: folder, extension: "swift") {
        let text = try Repository.text(path)
        words.formUnion(text.utf8.split { !Self.isPartOfWord[Int($0)] }.map { Substring($0) })
      }
    }
    for (module, _) in Self.modules {
      for symbol in try Self.symbols.get()[module] ?? []
      where ["func", "var", "let", "case", "macro"].contains(symbol.kind)
        && !symbol.type.hasSuffix("Error.Code") && symbol.type != "ResultCode"
      {
        #expect(
          words.contains(symbol.name[...]) || Self.implied.contains(symbol.name),
          "\(module): \(symbol.type).\(symbol.name)"
        )
      }
    }
  }
}
