import BatchIdentifiers
import BatchTestSupport
import FoundationEssentials
import Testing

@Suite struct IdentifierTextTests {
  static let lists: [String: IdentifierList] = [
    "integers": makeList((0..<4500).map { $0 * $0 - 500 }),
    "text": makeList(encoded: (0..<1000).map { .text("ü,/\($0)%\n") }),
    "composite": makeList(encoded: [.encoded(EncodedKey([.text("E U"), .integer(-3), .null]))]),
    "reals and blobs": makeList(encoded: [.encoded(EncodedKey([.real(-0.5), .blob([0, 255])]))]),
  ]

  private func text(_ list: IdentifierList, _ format: IdentifierTextFormat) throws -> [UInt8] {
    var writer = IdentifierTextWriter(list, format: format)
    var text: [UInt8] = []
    while let part = try writer.next() { text += part }
    return text
  }

  @Test(arguments: lists.keys.sorted(), IdentifierTextFormat.allCases)
  func `identifiers survive a round trip through text`(name: String, format: IdentifierTextFormat)
    throws
  {
    let list = try #require(Self.lists[name])
    let text = try text(list.slice(0..<min(list.count, 300)), format)
    var reader = IdentifierTextReader(
      storeIdentifier: format == .key ? "S" : nil,
      entityName: format == .key ? "orders" : nil
    )
    // In parts that end anywhere.
    for start in stride(from: 0, to: text.count, by: 97) {
      try reader.append(Array(text[start..<min(start + 97, text.count)]))
    }
    let read = try reader.finish()
    #expect(read.map(\.key) == list.prefix(300).map(\.key))
    #expect(read.space == list.space)
  }

  @Test func `the JSON of an identifier equals that of Codable`() throws {
    let list = makeList([28])
    let line = try text(list, .json)
    let id = try JSONDecoder().decode(PersistentIdentifier.self, from: Data(line))
    #expect(id == list[0])
    #expect(
      String(decoding: line, as: UTF8.self) == """
        {"implementation":{"primaryKey":"p28","uriRepresentation":"x-coredata://S/orders/p28",\
        "isTemporary":false,"storeIdentifier":"S","entityName":"orders"}}

        """
    )
  }

  @Test(arguments: [
    "x-coredata://S/orders/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F402", "x-coredata://S/orders/",
    "x-coredata://T/orders/p1", "x-coredata://S/lines/p1", "{}", "12a", "=%zz", "p12", "~0g",
    "*nan",
    "x-coredata:///orders/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F402", "{\"implementation\":3}", "=a",
  ])
  func `the error of a line without an identifier of the entity names the line`(line: String) {
    let error = #expect(throws: BatchError.self) {
      var reader = IdentifierTextReader(
        name: "orders.txt",
        storeIdentifier: "S",
        entityName: "orders",
        keyKind: .integer
      )
      try reader.append(Array("1\n\n 2 \r\n\(line)\n".utf8))
      _ = try reader.finish()
    }
    #expect(error?.code == .invalidIdentifier)
    #expect(error?.place == "orders.txt:4")
  }

  @Test(arguments: 0..<50)
  func `keys of all kinds are read from text in any order`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let pool: [PrimaryKey] = [
      .integer(1), .integer(-7), .integer(.max), .encoded(EncodedKey([.text("1")])),
      .encoded(EncodedKey([.real(1.5)])), .encoded(EncodedKey([.blob([0x31])])),
      .encoded(EncodedKey([.text("")])), .encoded(EncodedKey([.integer(1), .text("a")])),
    ]
    let keys = (0..<Int.random(in: 1...12, using: &random)).compactMap { _ in
      pool.randomElement(using: &random)
    }
    var reader = IdentifierTextReader(entityName: "t")
    for key in keys { try reader.append(Array("\(key)\n".utf8)) }
    let list = try reader.finish()
    #expect(try list.indices.map { "\(try list.key(at: $0))" } == keys.map { "\($0)" })
  }

  @Test func `keys in a text without an entity are refused`() {
    #expect(throws: BatchError.self) {
      var reader = IdentifierTextReader()
      try reader.append(Array("1\n".utf8))
    }
  }
}
