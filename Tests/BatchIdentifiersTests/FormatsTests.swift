import FoundationEssentials
import SystemPackage
import Testing

@testable import BatchIdentifiers

/// Holds `Documentation/Formats.md` and the files of earlier versions to the code.
@Suite struct FormatsTests {
  /// The folder of the package.
  static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// The file of the worked example.
  static func makeExample(at path: FilePath) throws {
    var builder = IdentifierListBuilder(
      storeIdentifier: "6E5D1507-3E60-41F0-A5F7-C1F28DC63F40",
      entityName: "orders"
    )
    builder.append(contentsOf: [3, 5, 6, 10, 11, 12, 20, 27, 28])
    try IdentifierFile.create(
      at: path,
      list: builder.finish(),
      metadata: Array(#"{"job":"backfill"}"#.utf8),
      overwriting: true
    )
    var log = try IdentifierFileLog(appendingTo: path)
    try log.append(kind: 1, payload: [9])
  }

  static func hexDump(_ bytes: [UInt8]) -> String {
    func hex(_ value: Int, _ digits: Int) -> String {
      let text = String(value, radix: 16)
      return String(repeating: "0", count: digits - text.count) + text
    }
    var lines: [String] = []
    for start in stride(from: 0, to: bytes.count, by: 16) {
      let row = bytes[start..<min(start + 16, bytes.count)]
      lines.append(hex(start, 4) + "  " + row.map { hex(Int($0), 2) }.joined(separator: " "))
    }
    return lines.joined(separator: "\n")
  }

  static func bytes(_ path: FilePath) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(filePath: path.string)))
  }

  @Test func `the worked example in Formats.md equals the bytes that the code writes`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("example.batch")
      try Self.makeExample(at: path)
      let dump = Self.hexDump(try Self.bytes(path))
      let page = String(
        decoding: try Data(contentsOf: Self.root.appending(path: "Documentation/Formats.md")),
        as: UTF8.self
      )
      #expect(page.contains("```\n\(dump)\n```"), "\(dump)")
    }
  }

  @Test func `the tables in Formats.md equal those of the code`() throws {
    let page = String(
      decoding: try Data(contentsOf: Self.root.appending(path: "Documentation/Formats.md")),
      as: UTF8.self
    )
    for (index, counts) in Bitmap.codeCounts.enumerated() {
      let row = "| \(index) | \(counts.map(String.init).joined(separator: " ")) |"
      #expect(page.contains(row), "\(row)")
      // The codes of a table are complete: every bit string is the beginning of some code.
      #expect(counts.reduce(0, +) == 256)
      #expect(counts.enumerated().reduce(0) { $0 + $1.element << (11 - $1.offset) } == 4096)
    }
    for coding in SegmentCoding.allCases { #expect(page.contains("| \(coding.rawValue) | `")) }
  }

  // MARK: Files that earlier versions have written

  /// The lists of the fixtures, by the names of their files.
  static func fixtureList(_ name: String) -> IdentifierList {
    if let keys = IdentifierListTests.encodedShapes[name] {
      return makeList(encoded: Array(keys.prefix(300)))
    }
    var shapes = KeyShapes(seed: 1)
    return makeList(shapes.keys(name, count: 5000))
  }

  static let fixtureNames = KeyShapes.names + IdentifierListTests.encodedShapes.keys.sorted()

  static func fixturePath(_ name: String) -> FilePath {
    let file = name.replacing(" ", with: "-") + ".ids"
    return FilePath(
      root.appending(path: "Tests/BatchIdentifiersTests/Fixtures/v1/\(file)").path
    )
  }

  static let indexURL = root.appending(path: "Tests/BatchIdentifiersTests/Fixtures/v1/index.txt")

  /// What the index of the fixtures says about a list: its count, its order, a hash of its keys.
  static func summary(_ list: PackedIdentifiers) throws -> String {
    let hash = XXHash64.hash(try list.encodedKeys(in: 0..<list.count).bytes)
    return "\(list.count) \(list.isSorted) \(String(hash, radix: 16))"
  }

  @Test(arguments: fixtureNames)
  func `files of version 1 can still be read`(name: String) throws {
    let file = try IdentifierFile(opening: Self.fixturePath(name))
    try file.verify()
    #expect(file.metadata == Array(name.utf8))
    #expect(file.storeIdentifier == "S" && file.entityName == "orders")
    #expect(try file.records().map(\.payload) == [Array("record".utf8)])
    let index = String(decoding: try Data(contentsOf: Self.indexURL), as: UTF8.self)
    let line = "\(name): \(try Self.summary(file.list))"
    #expect(index.split(separator: "\n").contains { $0 == line }, "\(line)")
  }

  /// Writes the fixtures; run it once, with BATCH_WRITE_FIXTURES set, when there is a new version.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["BATCH_WRITE_FIXTURES"] != nil))
  func `the fixtures of a new version are written`() throws {
    var index = ""
    for name in Self.fixtureNames {
      let path = Self.fixturePath(name)
      let list = Self.fixtureList(name)
      try IdentifierFile.create(at: path, list: list, metadata: Array(name.utf8), overwriting: true)
      var log = try IdentifierFileLog(appendingTo: path)
      try log.append(kind: 7, payload: Array("record".utf8))
      index += "\(name): \(try Self.summary(list.packed))\n"
    }
    try Data(index.utf8).write(to: Self.indexURL)
  }

  @Test func `the fixtures have a segment of every coding`() throws {
    var found: Set<SegmentCoding> = []
    for name in Self.fixtureNames {
      let list = try IdentifierFile(opening: Self.fixturePath(name)).list
      try list.forEachBlock(in: 0..<list.count) { _, _, segments, _ in
        for segment in segments { found.insert(segment.coding) }
      }
    }
    #expect(found == Set(SegmentCoding.allCases))
  }
}
