import BatchStore
import Foundation
import Testing

@Suite struct AttributeCodecTests {
  private func decoded<Value: AttributeValue>(_ type: Value.Type, _ value: SQLValue) -> Value? {
    type.codec.decode(value)
  }

  private func survives<Value: AttributeValue & Equatable>(_ value: Value) -> Bool {
    Value.codec.decode(Value.codec.encode(value)) == value
  }

  @Test func `a value that was encoded decodes to itself`() throws {
    #expect(survives(Int64.min) && survives(Int.max) && survives(Int32.min) && survives(Int16.max))
    #expect(survives(Int8.min) && survives(-0.1) && survives(Float(0.1)) && survives("é\u{0}"))
    #expect(survives(Data([0, 255])) && survives(true) && survives(false) && survives(UUID()))
    let decimal = try #require(Decimal(string: "-12345678901234567890.0123456789"))
    #expect(survives(decimal) && survives(Decimal(0)))
    #expect(survives(try #require(URL(string: "https://example.org/a?b=c%20d"))))
  }

  @Test func `a value of another class, or out of range, does not fit`() {
    #expect(decoded(Int8.self, .integer(128)) == nil)
    #expect(decoded(Int.self, .real(1)) == nil)
    #expect(decoded(Int.self, .text("1")) == nil)
    #expect(decoded(Double.self, .integer(.max)) == nil)
    #expect(decoded(Float.self, .real(1e300)) == nil)
    #expect(decoded(Bool.self, .integer(2)) == nil)
    #expect(decoded(String.self, .blob([65])) == nil)
    #expect(decoded(UUID.self, .blob([1, 2])) == nil)
    #expect(decoded(Decimal.self, .text("12 apples")) == nil)
    #expect(decoded(Decimal.self, .real(.infinity)) == nil)
    #expect(decoded(String.self, .null) == nil)
    #expect(String.codec.optional.decode(.null) == .some(nil))
    #expect(String.codec.optional.decode(.integer(1)) == nil)
  }

  @Test func `what other writers store is understood`() {
    #expect(decoded(Double.self, .integer(3)) == 3)
    #expect(decoded(Decimal.self, .real(0.1)) == Decimal(string: "0.1"))
    let octets = [UInt8](0..<16)
    #expect(
      decoded(UUID.self, .blob(octets))?.uuidString == "00010203-0405-0607-0809-0A0B0C0D0E0F"
    )
  }

  @Test func `dates survive in each of their forms`() {
    let date = Date(timeIntervalSinceReferenceDate: 639_503_569.5)
    let whole = Date(timeIntervalSince1970: 0)
    for codec in [AttributeCodec<Date>.iso8601, .unixSeconds, .referenceSeconds] {
      #expect(codec.decode(codec.encode(date)) == date, "\(codec.typeName)")
      #expect(codec.decode(codec.encode(whole)) == whole, "\(codec.typeName)")
      #expect(codec.decode(.blob([])) == nil)
    }
    #expect(AttributeCodec<Date>.iso8601.encode(whole) == .text("1970-01-01T00:00:00Z"))
    #expect(AttributeCodec<Date>.iso8601.decode(.text("yesterday")) == nil)
  }

  @Test func `raw values and JSON that stand for nothing do not fit`() {
    let raw = AttributeCodec<Order.State>.raw(placeholder: .open)
    #expect(raw.decode(.text("paid")) == .paid && raw.decode(.text("lost")) == nil)
    let json = AttributeCodec<Order.Address>.json(placeholder: Order.Address(city: ""))
    #expect(json.encode(Order.Address(city: "Bonn")) == .text(#"{"city":"Bonn"}"#))
    #expect(json.decode(.text("{}")) == nil)
  }
}
