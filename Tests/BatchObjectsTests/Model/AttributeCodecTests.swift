import BatchRuns
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct AttributeCodecTests {
  private func decoded<Value: AttributeValue>(_ type: Value.Type, _ value: SQLValue) -> Value? {
    type.codec.decode(value)
  }

  private func survives<Value: AttributeValue & Equatable>(_ value: Value) -> Bool {
    Value.codec.decode(Value.codec.encode(value)) == value
  }

  @Test func `an encoded value decodes to itself`() throws {
    #expect(survives(Int64.min) && survives(Int.max) && survives(Int32.min) && survives(Int16.max))
    #expect(survives(Int8.min) && survives(-0.1) && survives(Float(0.1)) && survives("é\u{0}"))
    #expect(survives(Data([0, 255])) && survives(true) && survives(false) && survives(UUID()))
    let decimal = try #require(Decimal(string: "-12345678901234567890.0123456789"))
    #expect(survives(decimal) && survives(Decimal(0)))
    #expect(survives(try #require(URL(string: "https://example.org/a?b=c%20d"))))
  }

  @Test func `a value of another class or out of range does not decode`() {
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

  @Test func `values stored by other writers are decoded`() {
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

  @Test func `an ISO 8601 date encodes to the text it was decoded from`() throws {
    let codec = AttributeCodec<Date>.iso8601
    for millisecond in 1...999 {
      let digits = String("\(1000 + millisecond)".dropFirst())
      let text = SQLValue.text("2026-11-21T15:05:00.\(digits)Z")
      #expect(codec.encode(try #require(codec.decode(text))) == text)
    }
    // To the nearest millisecond, which may be the next second.
    let date = Date(timeIntervalSince1970: 0.9996)
    #expect(codec.encode(date) == .text("1970-01-01T00:00:01Z"))
    #expect(codec.decode(codec.encode(.distantPast)) == .distantPast)
    #expect(codec.decode(codec.encode(.distantFuture)) == .distantFuture)
    for seconds in [.infinity, -.infinity, .nan, 1e300, -1e300, 1e18, -1e11] {
      #expect(codec.decode(codec.encode(Date(timeIntervalSince1970: seconds))) == nil)
    }
    for text in ["2026-11-21T15:05:00Z or so", "2026-11-21T15:05:00.5Z5", " 2026-11-21T15:05:00Z"] {
      #expect(codec.decode(.text(text)) == nil)
    }
  }

  @Test func `a decimal with more digits than fit does not decode`() throws {
    let most = "340282366920938463463374607431768211455"
    for text in [most, "-0.\(most)", "\(most)00000", "000\(most).000", "0.\(most)e-9"] {
      #expect(decoded(Decimal.self, .text(text)) == Decimal(string: text), "\(text)")
      #expect(survives(try #require(decoded(Decimal.self, .text(text)))))
    }
    for text in ["340282366920938463463374607431768211456", "\(most)1", "-\(most).1", "0.1\(most)"]
    {
      #expect(decoded(Decimal.self, .text(text)) == nil, "\(text)")
    }
  }

  @Test func `unknown raw values and JSON do not decode`() {
    let raw = AttributeCodec<Order.State>.raw(placeholder: .open)
    #expect(raw.decode(.text("paid")) == .paid && raw.decode(.text("lost")) == nil)
    let json = AttributeCodec<Order.Address>.json(placeholder: Order.Address(city: ""))
    #expect(json.encode(Order.Address(city: "Bonn")) == .text(#"{"city":"Bonn"}"#))
    #expect(json.decode(.text("{}")) == nil)
  }

  @Test func `text dates have the form that SQLite writes`() throws {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let connection = try Connection(path: TestDatabase.make(in: directory))
    let (dateTime, day) = (AttributeCodec<Date>.sqlDateTime, AttributeCodec<Date>.sqlDate)
    for _ in 0..<500 {
      let seconds = Int64.random(in: -62_135_596_800..<253_402_300_800, using: &generator)
      let date = Date(timeIntervalSince1970: Double(seconds))
      let text = try connection.value("SELECT datetime(?, 'unixepoch')", .integer(seconds))
      #expect(dateTime.encode(date) == text, "seed \(seed)")
      #expect(text.map { dateTime.decode($0) } == date, "seed \(seed)")
      let midnight = try connection.value("SELECT date(?, 'unixepoch')", .integer(seconds))
      let decoded = try #require(midnight.flatMap { day.decode($0) })
      #expect(day.encode(decoded) == midnight, "seed \(seed)")
      #expect(midnight.map { dateTime.decode($0) } == decoded, "seed \(seed)")
    }
    let date = Date(timeIntervalSince1970: 1_700_000_000.25)
    #expect(dateTime.encode(date) == .text("2023-11-14 22:13:20.250000"))
    for text in [
      "2023-11-14 22:13:20.25", "2023-11-14T22:13:20.250Z", "2023-11-14 22:13:20.2500004",
    ] {
      #expect(dateTime.decode(.text(text)) == date)
    }
    for text in [
      "0000-00-00 00:00:00", "2023-02-29", "2023-11-14 24:00", "2023-11-14 22:13:20.", "now", "",
      "2023-11-14 22", "2023-11-14 22:13:20+01:00", "2023-1-1",
    ] {
      #expect(dateTime.decode(.text(text)) == nil, "\(text)")
      #expect(day.decode(.text(text)) == nil, "\(text)")
    }
    #expect(day.decode(day.encode(date)) == nil && dateTime.decode(.real(0)) == nil)
    #expect(dateTime.decode(dateTime.encode(.distantFuture)) == .distantFuture)
    #expect(dateTime.decode(dateTime.encode(Date(timeIntervalSince1970: 1e12))) == nil)
  }
}
