import FoundationEssentials
import SystemPackage
import Testing

@testable import BatchIdentifiers

/// Reading a file whose blocks are damaged, in every way that a caller has: an error that names the
/// block, or the right identifiers.
@Suite struct DamagedBlockTests {
  static let lists: [String: IdentifierList] = {
    var shapes = KeyShapes(seed: 12)
    return [
      "integers": makeList(shapes.keys("wide", count: 5000)),
      "integers in no order": makeList(
        shapes.keys("wide", count: 5000).shuffled(using: &shapes.generator)
      ),
      "texts": makeList(encoded: (0..<6000).map { .text("order-\($0 * $0)") }.sorted()),
      "texts in no order": makeList(encoded: (0..<6000).map { .text("order-\($0 * 7919 % 6000)") }),
    ]
  }()

  /// Every public way to read part of a file, with its result for an intact one.
  private static let readers:
    [(name: String, read: @Sendable (IdentifierFile, Int) throws -> [PrimaryKey?])] = [
      (
        "identifiers",
        { file, position in
          try file.identifiers(in: position..<min(position + 5, file.count)).map(\.key)
        }
      ),
      ("identifier", { file, position in [try file.identifier(at: position).key] }),
      (
        "encoded keys",
        { file, position in
          let keys = try file.encodedKeys(in: position..<min(position + 5, file.count))
          return (0..<keys.count).map { PrimaryKey.encoded(keys[$0]).canonical }
        }
      ),
      (
        "integers",
        { file, position in
          guard file.header.keyKind == .integer else { return [] }
          return try file.integers(in: position..<min(position + 5, file.count)).map(
            PrimaryKey.integer
          )
        }
      ),
      (
        "load",
        { file, position in
          let list = try file.load()
          return list[position..<min(position + 5, list.count)].map(\.key)
        }
      ),
    ]

  @Test(arguments: lists.keys.sorted())
  func `the error names a damaged block, and the other blocks are read`(name: String) throws {
    let list = try #require(Self.lists[name])
    let wanted = Array(list).map(\.key)
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      try IdentifierFile.create(at: path, list: list)
      let whole = try FormatsTests.bytes(path)
      let opened = try IdentifierFile(opening: path)
      let layout = opened.layout
      let directory = opened.list.directory
      try #require(directory.blockCount > 1)
      #expect(try Array(opened.load()).map(\.key) == wanted)
      #expect(try opened.contains(list[list.count / 2]))

      for block in 0..<directory.blockCount {
        let offset = layout.blocksOffset + directory.offsets[block]
        var bytes = whole
        bytes[offset + directory.byteCount(ofBlock: block) / 2] ^= 0x10
        try Data(whole).write(to: URL(filePath: path.string))
        let openedBefore = try IdentifierFile(opening: path)
        // In place, so that a file which is open sees the damage too.
        try Data(bytes).write(to: URL(filePath: path.string))
        for file in [openedBefore, try IdentifierFile(opening: path)] {
          for other in 0..<directory.blockCount {
            let position = directory.positions[other]
            // Every way to read all of a file gives the same.
            for reader in Self.readers where reader.name != "load" || other == block {
              let result = Result { try reader.read(file, position) }
              // Each block is read at its start, and a block holds more than the readers take.
              let touches = other == block || reader.name == "load"
              switch result {
              case .success(let keys):
                #expect(!touches || keys.isEmpty, "\(reader.name) of block \(other)")
                #expect(keys == Array(wanted[position..<(position + keys.count)]))
              case .failure(let error as BatchError):
                #expect(touches, "\(reader.name) of block \(other): \(error)")
                #expect(error.code == .damagedFile)
                #expect(error.message.hasPrefix("block \(block) "), "\(error)")
                #expect(error.place == path.string)
              case .failure(let error): Issue.record(error)
              }
            }
            let identifier = list[position]
            do {
              #expect(try file.contains(identifier))
            } catch let error as BatchError {
              #expect(other == block || !list.isSorted, "\(error)")
              #expect(error.message.hasPrefix("block \(block) "), "\(error)")
            }
          }
          let error = #expect(throws: BatchError.self) { try file.verify() }
          #expect(error?.message.hasPrefix("block \(block) ") == true)
        }
      }
    }
  }

  @Test func `a loaded list no longer needs its file`() throws {
    let list = try #require(Self.lists["integers"])
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      try IdentifierFile.create(at: path, list: list)
      let file = try IdentifierFile(opening: path)
      let loaded = try file.load()
      // Truncated in place, as if a copy onto it had failed.
      let descriptor = try FileDescriptor.open(path, .writeOnly, options: .truncate)
      try descriptor.close()
      #expect(loaded.elementsEqual(list))
      let error = #expect(throws: BatchError.self) { try file.identifiers(in: 0..<10) }
      #expect(error?.code == .damagedFile)
      #expect(throws: BatchError.self) { try file.load() }
    }
  }

  @Test func `a list contains no identifiers of other entities or stores`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      try IdentifierFile.create(at: path, list: makeList([1, 2, 3]))
      let file = try IdentifierFile(opening: path)
      let space = file.list.space
      #expect(try file.contains(space.identifier(.integer(2))))
      #expect(try !file.contains(space.identifier(.integer(4))))
      for other in [
        IdentifierSpace(storeIdentifier: "other", entityName: space.entityName),
        IdentifierSpace(storeIdentifier: space.storeIdentifier, entityName: "other"),
      ] {
        #expect(try !file.contains(other.identifier(.integer(2))))
      }
    }
  }
}
