import BatchIdentifiers
import Testing

@Suite struct IdentifierListDecodingTests {
  private static func list(_ keyKind: IdentifierList.KeyKind, count: Int) -> IdentifierList {
    var builder = IdentifierListBuilder(
      storeIdentifier: "S",
      entityName: "orders",
      keyKind: keyKind
    )
    var encoder = EncodedKey.Encoder()
    for index in 0..<count {
      switch keyKind {
      case .integer: builder.append(Int64(index * index))
      case .encoded:
        encoder.removeAll()
        encoder.append(text: "key \(index)")
        encoder.append(Int64(-index))
        builder.append(.encoded(encoder.key))
      }
    }
    return builder.finish()
  }

  private static func bytes(of list: IdentifierList) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try IdentifierFile.encode(list.packed, metadata: []) { bytes.append(copying: $0) }
    return bytes
  }

  @Test(arguments: [IdentifierList.KeyKind.integer, .encoded], [0, 1, 10_000])
  func `a list is decoded from the bytes of a file`(
    keyKind: IdentifierList.KeyKind,
    count: Int
  ) throws {
    let list = Self.list(keyKind, count: count)
    let decoded = try IdentifierList(decoding: Self.bytes(of: list))
    #expect(decoded.header.entityName == "orders")
    #expect(decoded.header.storeIdentifier == "S")
    #expect(decoded.isSorted == list.isSorted)
    #expect(decoded.elementsEqual(list))
  }

  @Test(arguments: [IdentifierList.KeyKind.integer, .encoded])
  func `changed or missing bytes of a list are refused`(
    keyKind: IdentifierList.KeyKind
  ) throws {
    let bytes = try Self.bytes(of: Self.list(keyKind, count: 300))
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= 0x21
      #expect(throws: BatchError.self, "byte \(index)") { try IdentifierList(decoding: damaged) }
      #expect(throws: BatchError.self, "\(index) bytes") {
        try IdentifierList(decoding: Array(bytes[..<index]))
      }
    }
  }
}
