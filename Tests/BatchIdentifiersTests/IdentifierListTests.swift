import BatchTestSupport
@testable import BatchIdentifiers
import Testing

/// A list of some integer keys.
func makeList(_ keys: [Int64], entityName: String = "orders") -> IdentifierList {
  var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: entityName)
  builder.append(contentsOf: keys)
  return builder.finish()
}

/// A list of some keys of any kind.
func makeList(encoded keys: [PrimaryKey]) -> IdentifierList {
  var builder = IdentifierListBuilder(
    storeIdentifier: "S",
    entityName: "orders",
    keyKind: .encoded
  )
  for key in keys { builder.append(key) }
  return builder.finish()
}

@Suite struct IdentifierListTests {
  @Test(arguments: [0, 1, 6, 7, 8, 20, 21, 22], [1, 7, 100])
  func `the chunks of a list cover it in order`(count: Int, size: Int) {
    let list = makeList((0..<count).map { Int64($0 * 3) })
    let chunks = list.chunks(ofCount: size)
    #expect(Array(chunks.joined()) == Array(list))
    #expect(chunks.dropLast().allSatisfy { $0.count == size })
    #expect(chunks.last.map { (1...size).contains($0.count) } ?? list.isEmpty)
    #expect(chunks.count == Array(chunks).count)
    #expect(Array(chunks.reversed().map(\.first)) == Array(chunks.map(\.first)).reversed())
  }

  @Test(arguments: KeyShapes.names)
  func `a list returns the keys put into it`(shape: String) throws {
    for (seed, count) in [(1, 6000), (2, 4097), (4, 65), (5, 3)] {
      var shapes = KeyShapes(seed: UInt64(seed))
      let keys = shapes.keys(shape, count: count)
      let list = makeList(keys)
      #expect(list.count == keys.count)
      #expect(try list.integers(in: 0..<keys.count) == keys, "\(shape), seed \(seed)")
      #expect(list.isSorted == keys.isAscending, "\(shape), seed \(seed)")
      try list.verify()
      for _ in 0..<5 where !keys.isEmpty {
        let start = Int.random(in: 0..<keys.count, using: &shapes.generator)
        let end = min(keys.count, start + Int.random(in: 0...700, using: &shapes.generator))
        #expect(try list.integers(in: start..<end) == Array(keys[start..<end]))
        #expect(list[start].key == .integer(keys[start]), "\(shape), seed \(seed), at \(start)")
      }
    }
  }

  @Test(arguments: KeyShapes.names)
  func `a sorted list finds its keys and no others`(shape: String) throws {
    var shapes = KeyShapes(seed: 11)
    let keys = shapes.keys(shape, count: 5000)
    let list = makeList(keys)
    guard list.isSorted else { return }
    let set = Set(keys)
    for key in keys.shuffled(using: &shapes.generator).prefix(40) {
      for candidate in [key, key &+ 1, key &- 1] {
        let position = try list.firstPosition(of: .integer(candidate))
        #expect((position != nil) == set.contains(candidate), "\(shape): \(candidate)")
        if let position { #expect(keys[position] == candidate) }
      }
    }
    #expect(try !list.contains(key: .text("x")))
  }

  @Test(arguments: ["half", "third", "tenth"])
  func `keys of long selections are found from either end`(shape: String) throws {
    var shapes = KeyShapes(seed: 12)
    let keys = shapes.keys(shape, count: 70_000)
    let list = makeList(keys)
    try list.verify()
    #expect(try list.integers(in: 0..<keys.count) == keys)
    for position in keys.indices.shuffled(using: &shapes.generator).prefix(300) {
      #expect(try list.firstPosition(of: .integer(keys[position])) == position)
      let after = min(keys.count - 1, position + Int.random(in: 0..<200, using: &shapes.generator))
      #expect(list[after].key == .integer(keys[after]))
      let next = keys[position] + 1
      #expect(try list.contains(key: .integer(next)) == keys[position...].prefix(2).contains(next))
    }
    let reversed = makeList(keys.reversed())
    try reversed.verify()
    #expect(try reversed.integers(in: 0..<keys.count) == keys.reversed())
  }

  @Test func `a list built key by key equals one built at once`() throws {
    var shapes = KeyShapes(seed: 3)
    let keys = shapes.keys("mixed", count: 9000)
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "orders")
    for key in keys { builder.append(key) }
    let list = builder.finish()
    #expect(list.payloadByteCount == makeList(keys).payloadByteCount)
    #expect(Array(list).map(\.key) == keys.map { .integer($0) })
  }

  @Test func `an empty list is empty`() throws {
    let list = IdentifierList.empty(storeIdentifier: "S", entityName: "orders")
    #expect(list.isEmpty && list.isSorted)
    #expect(try list.integers(in: 0..<0).isEmpty)
    #expect(try list.firstPosition(of: .integer(1)) == nil)
    #expect(Array(list).isEmpty)
  }

  @Test func `lists of dense keys and of runs take few bytes`() {
    #expect(makeList(Array(1...200_000)).payloadByteCount < 20)
    #expect(makeList((1...200_000).reversed()).payloadByteCount < 20)
    #expect(makeList((1...200_000).map { $0 * 3 }).payloadByteCount < 20)
    #expect(makeList((1...200_000).filter { $0 % 10_000 != 0 }).payloadByteCount < 100)
  }

  static let encodedShapes: [String: [PrimaryKey]] = [
    "text": (0..<5000).map { .text("order-\($0 * 31 % 9001)") },
    "sorted text": (0..<5000).map { .text("order-\(100_000 + $0)") },
    "long text": (0..<40).map { .text(String(repeating: "x", count: 7000) + "\($0)") },
    "composite": (0..<1000).map { .encoded(EncodedKey([.text("EU"), .integer($0)])) },
    "blobs with zeros": (0..<1000).map { .blob([0, UInt8($0 % 256), 0, UInt8($0 / 256)]) },
    "UUIDs": (0..<1000).map { .blob(uuid($0)) },
    "lowercase UUIDs": (0..<500).map { .text(uuidText($0)) },
    "uppercase UUIDs": (0..<500).map { .text(uuidText($0).uppercased()) },
    "sorted UUIDs": (0..<4200).map { .blob(uuid($0)) }.sorted(),
    "integers and text": (0..<1000).map { $0 % 2 == 0 ? .integer(Int64($0)) : .text("\($0)") },
  ]

  static func uuid(_ seed: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: UInt64(seed))
    return (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  static func uuidText(_ seed: Int) -> String {
    let digits = uuid(seed).map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
    var text = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text += "-" }
      text.append(digit)
    }
    return text
  }

  @Test(arguments: encodedShapes.keys.sorted())
  func `a list of encoded keys returns the keys put into it`(shape: String) throws {
    let keys = try #require(Self.encodedShapes[shape])
    let list = makeList(encoded: keys)
    try list.verify()
    #expect(Array(list).map(\.key) == keys)
    // These ask for one position after the other.
    #expect(list.map(\.key) == keys && list.reversed().map(\.key) == keys.reversed())
    #expect(list.isSorted == zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 })
    for position in stride(from: 0, to: keys.count, by: 77) {
      #expect(list[position].key == keys[position])
    }
    for position in stride(from: 0, to: keys.count, by: 1177) {
      #expect(try list.key(at: position).description == keys[position].description)
      guard list.isSorted || position == 0 else { continue }
      #expect(try list.firstPosition(of: keys[position]) == position)
    }
    #expect(try !list.contains(key: .text("nowhere")))
  }

  @Test(arguments: encodedShapes.keys.sorted())
  func `a look-up caches the keys beside the one it finds`(shape: String) throws {
    let keys = try #require(Self.encodedShapes[shape])
    let list = makeList(encoded: keys)
    for position in stride(from: 0, to: keys.count, by: 611) {
      #expect(try list.key(at: position).description == keys[position].description)
      // Eight keys of seven thousand bytes have a segment of their own.
      for near in (position / 8 * 8)..<min(position / 8 * 8 + 8, keys.count) {
        #expect(list.packed.cache.encodedKey(at: near) != nil, "\(position): \(near)")
      }
    }
  }

  @Test func `UUID keys take at most sixteen bytes each`() {
    let keys = (0..<2000).map { PrimaryKey.blob(Self.uuid($0)) }
    #expect(makeList(encoded: keys).payloadByteCount < 2000 * 16 + 200)
    let text = (0..<500).map { PrimaryKey.text(Self.uuidText($0)) }
    #expect(makeList(encoded: text).payloadByteCount < 500 * 16 + 200)
    #expect(makeList(encoded: keys.sorted()).payloadByteCount < 2000 * 15)
  }

  @Test func `a list of encoded keys refuses to return integers`() throws {
    let list = makeList(encoded: [.text("a")])
    #expect(throws: BatchError.self) { try list.integers(in: 0..<1) }
    #expect(try makeList([3]).encodedKeys(in: 0..<1)[0] == EncodedKey([.integer(3)]))
  }
}
