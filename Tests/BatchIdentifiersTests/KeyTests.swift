import BatchTestSupport
import Testing

@testable import BatchIdentifiers

@Suite struct KeyTests {
  /// In SQLite's order.
  static let ordered: [KeyComponent] = [
    .null, .real(-.infinity), .real(-1e300), .integer(.min), .integer(.min + 1), .real(-1e15 - 0.5),
    .integer(-257), .integer(-256), .real(-255.5), .integer(-255), .integer(-2), .real(-1.5),
    .integer(-1), .real(-0.5), .integer(0), .real(.leastNonzeroMagnitude), .real(0.25), .real(0.5),
    .integer(1),
    .real(1.0), .real(1.5), .integer(255), .integer(256), .integer(1 << 40), .integer(.max - 1),
    .integer(.max), .real(0x1p63), .real(1e300), .real(.infinity), .text(""), .text("\u{0}"),
    .text("\u{0}a"), .text("a"), .text("a\u{0}"), .text("a\u{0}b"), .text("ab"), .text("b"),
    .text("é"), .text("\u{10FFFF}"), .blob([]), .blob([0]), .blob([0, 0]), .blob([0, 1]),
    .blob([1]),
    .blob([255]), .blob([255, 255]),
  ]

  @Test func `encoded keys are ordered as SQLite orders their components`() {
    for (index, left) in Self.ordered.enumerated() {
      for (other, right) in Self.ordered.enumerated() {
        let less = EncodedKey([left]) < EncodedKey([right])
        #expect(less == (index < other), "\(left) \(right)")
        // What follows in the key must not change that.
        for rest in [KeyComponent.null, .integer(-5), .text("z"), .blob([255])] where index != other
        {
          let longer = EncodedKey([left, rest]) < EncodedKey([right])
          #expect(longer == (index < other), "\(left),\(rest) \(right)")
        }
      }
    }
  }

  @Test func `an encoded key is restored with its components from its bytes and its text`() throws {
    for left in Self.ordered {
      for right in Self.ordered {
        let key = EncodedKey([left, right])
        #expect(key.components == [left, right])
        #expect(try EncodedKey(validating: key.bytes) == key)
        let id = PersistentIdentifier(storeIdentifier: "S", entityName: "E", key: .encoded(key))
        #expect(PersistentIdentifier(uriString: id.uriString)?.key == .encoded(key), "\(key)")
      }
    }
  }

  @Test func `a text key that is not UTF-8 keeps its bytes`() {
    var encoder = EncodedKey.Encoder()
    let bytes: [UInt8] = [0xFF, 0x00, 0xC0]
    bytes.withUnsafeBytes { encoder.append(textBytes: $0) }
    let id = PersistentIdentifier(
      storeIdentifier: "S",
      entityName: "E",
      key: .encoded(encoder.key)
    )
    #expect(id.primaryKey == "p=%FF%00%C0")
    #expect(PersistentIdentifier(uriString: id.uriString) == id)
  }

  @Test func `bytes that are not a key are refused`() {
    var generator = SeededGenerator(seed: 5)
    for bytes: [UInt8] in [
      [], [0], [0x30], [0x30, 65], [0x1A], [0x1A, 0], [0x1B, 0, 1], [0x18], [0x10], [0xFF], [0x50],
      [0x19, 0xFF], [0x19, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0], [0x17, 0xFF, 0xFF],
    ] {
      #expect(throws: BatchError.self, "\(bytes)") { try EncodedKey(validating: bytes) }
    }
    // Accepted bytes are the unique encoding of their components.
    for _ in 0..<20_000 {
      let tags: [UInt8] = [1, 0x10, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x22, 0x30, 0x40, 0xFF, 0, 65]
      let bytes = (0..<Int.random(in: 1...12, using: &generator)).map { _ in
        tags.randomElement(using: &generator) ?? 0
      }
      guard let key = try? EncodedKey(validating: bytes) else { continue }
      #expect(reencoded(key) == bytes)
    }
  }

  private func reencoded(_ key: EncodedKey) -> [UInt8] {
    var encoder = EncodedKey.Encoder()
    key.forEachComponent { component in
      switch component {
      case .null: encoder.appendNull()
      case .integer(let value): encoder.append(value)
      case .real(let value): encoder.append(value)
      case .text(let bytes): encoder.append(textBytes: bytes)
      case .blob(let bytes): encoder.append(blob: bytes)
      }
    }
    return encoder.bytes
  }

  @Test func `XXH64 gives the published values`() {
    #expect(XXHash64.hash([]) == 0xEF46_DB37_51D8_E999)
    #expect(XXHash64.hash(Array("a".utf8)) == 0xD24E_C4F1_A98C_6E5B)
    #expect(XXHash64.hash(Array("abc".utf8)) == 0x44BC_2CF5_AD77_0999)
    let sentence = "Nobody inspects the spammish repetition"
    #expect(XXHash64.hash(Array(sentence.utf8)) == 0xFBCE_A83C_8A37_8BF1)
  }
}
