import BatchIdentifiers
import Testing

@Suite struct IdentifierListTests {
  static let shapes: [String: [Int64]] = [
    "nothing": [],
    "one": [42],
    "dense": Array(1...10_000),
    "every third": stride(from: -9, to: 30_000, by: 3).map { $0 },
    "squares": (0..<5000).map { $0 * $0 },
    "descending": (0..<5000).map { 100_000 - $0 * 7 - $0 % 3 },
    "extremes": [.min, -1, 0, 1, .max],
    "shuffled": (0..<5000).map { $0 * 7919 % 5003 },
    "the same again": Array(repeating: 7, count: 3000),
  ]

  @Test(arguments: shapes.keys.sorted())
  func `a list gives back what was put in`(shape: String) throws {
    let keys = try #require(Self.shapes[shape])
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "orders")
    builder.append(contentsOf: keys)
    let list = builder.finish()
    #expect(list.count == keys.count)
    #expect(try list.integers(in: 0..<keys.count) == keys)
    #expect(list.isSorted == zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 })
    try list.verify()
    for position in Swift.stride(from: 0, to: keys.count, by: 373) {
      let end = min(position + 1500, keys.count)
      #expect(try list.integers(in: position..<end) == Array(keys[position..<end]))
      #expect(list[position].key == .integer(keys[position]))
    }
    #expect(list.map(\.key) == keys.map { .integer($0) })
  }

  @Test func `a list of text keys gives back what was put in`() throws {
    var builder = IdentifierListBuilder(
      storeIdentifier: "S",
      entityName: "orders",
      keyKind: .encoded
    )
    let keys = (0..<5000).map { PrimaryKey.text("order-\($0 * 31 % 977)-\($0)") }
    for key in keys { builder.append(key) }
    let list = builder.finish()
    #expect(list.map(\.key) == keys)
    #expect(!list.isSorted)
    try list.verify()
    #expect(try list.key(at: 4321) == keys[4321])
  }
}
