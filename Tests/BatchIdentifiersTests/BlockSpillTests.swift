import BatchTestSupport
@testable import BatchIdentifiers
import FoundationEssentials
import SystemPackage
import Testing

/// Lists whose first blocks are in memory and whose others are in a temporary file.
@Suite struct BlockSpillTests {
  private static let folder = FilePath("/tmp")

  private func packed(_ keys: [Int64], _ spill: BlockSpill?) -> PackedIdentifiers {
    var builder = IdentifierListBuilder(
      storeIdentifier: "S",
      entityName: "orders",
      keyKind: .integer,
      spill: spill
    )
    builder.append(contentsOf: keys)
    return builder.finishPacked()
  }

  /// The bytes of blocks that a list keeps in memory.
  private func held(_ list: PackedIdentifiers) -> Int {
    guard case .spilled(_, let places) = list.source else { return -1 }
    return places.reduce(0) { sum, place in
      guard case .memory(let block) = place else { return sum }
      return sum + block.count - PaddedBytes.padding
    }
  }

  @Test(arguments: KeyShapes.names, [0, 20_000, 1 << 30])
  func `a spilled list has the keys of one in memory`(shape: String, limit: Int) throws {
    var shapes = KeyShapes(seed: 3)
    let keys = shapes.keys(shape, count: 30_000)
    let spill = BlockSpill(memoryLimit: limit, in: [Self.folder])
    let list = packed(keys, spill)
    #expect(try list.integers(in: 0..<list.count) == keys)
    #expect(list.isSorted == makeList(keys).isSorted)
    #expect(held(list) <= limit)
    #expect(held(list) + spill.fileByteCount == list.encodedByteCount)
    try list.verify()
    // In a file, it is the same bytes.
    func file(_ list: PackedIdentifiers) throws -> [UInt8] {
      var bytes: [UInt8] = []
      try IdentifierFile.encode(list, metadata: []) { bytes.append(copying: $0) }
      return bytes
    }
    #expect(try file(list) == file(makeList(keys).packed))
    #expect(try Array(list.loaded()) == Array(makeList(keys)))
  }

  @Test func `encoded keys are spilled to a file as well`() throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    let keys = (0..<20_000).map { _ in
      (0..<Int.random(in: 1...40, using: &generator)).map { _ in
        UInt8.random(in: 97...122, using: &generator)
      }
    }
    let spill = BlockSpill(memoryLimit: 50_000, in: [Self.folder])
    var builder = IdentifierListBuilder(
      storeIdentifier: "S",
      entityName: "orders",
      keyKind: .encoded,
      spill: spill
    )
    let texts = keys.map { EncodedKey([.text(String(decoding: $0, as: UTF8.self))]) }
    for text in texts { builder.append(.encoded(text)) }
    let list = builder.finishPacked()
    #expect(spill.fileByteCount > 100_000, "seed \(seed)")
    #expect(held(list) <= 50_000)
    for position in stride(from: 0, to: list.count, by: 37) {
      #expect(try list.key(at: position) == .encoded(texts[position]), "seed \(seed)")
    }
  }

  @Test func `parts of a list that share a spill are joined`() throws {
    let spill = BlockSpill(memoryLimit: 5_000, in: [Self.folder])
    var shapes = KeyShapes(seed: 9)
    let keys = Array(Set(shapes.keys("wide", count: 20_000))).sorted()
    let cuts = [0, 1, 7_000, 7_000, 20_000].map { min($0, keys.count) }
    let parts = zip(cuts, cuts.dropFirst()).map { packed(Array(keys[$0..<$1]), spill) }
    // Made in another order than they are joined in, as by several readers.
    let joined = PackedIdentifiers.joining(parts)
    #expect(spill.fileByteCount > 0)
    #expect(try joined.integers(in: 0..<joined.count) == keys)
    #expect(joined.isSorted)
  }

  @Test(arguments: ["/nonexistent", "/proc", "/dev/null"])
  func `blocks stay in memory where no spill file can be created`(folder: String) throws {
    let spill = BlockSpill(memoryLimit: 0, in: [FilePath(folder)])
    var shapes = KeyShapes(seed: 5)
    let keys = shapes.keys("wide", count: 10_000)
    let list = packed(keys, spill)
    #expect(spill.fileByteCount == 0)
    #expect(try list.integers(in: 0..<list.count) == keys)
  }

  @Test func `a spill file has no name in its folder`() throws {
    try withTemporaryFolder { folder in
      let spill = BlockSpill(memoryLimit: 0, in: [folder])
      var shapes = KeyShapes(seed: 6)
      let list = packed(shapes.keys("wide", count: 10_000), spill)
      #expect(spill.fileByteCount == list.encodedByteCount)
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.string)
      #expect(names == [])
    }
  }
}
