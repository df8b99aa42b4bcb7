#if PostgreSQL
/// A type whose text form depends on the session's settings, by its OID.
///
/// Its binary form does not, so the text is made from that.
///
/// The texts are those of a server with `DateStyle` ISO, `IntervalStyle` postgres and `TimeZone`
/// UTC. The server reads them alike under any settings.
package enum BinaryText: UInt32, Sendable, Hashable {
  case singleReal = 700
  case real = 701
  case date = 1082
  case timestamp = 1114
  case timestampWithZone = 1184
  case interval = 1186

  var typeName: String {
    switch self {
    case .singleReal: "float4"
    case .real: "float8"
    case .date: "date"
    case .timestamp: "timestamp"
    case .timestampWithZone: "timestamptz"
    case .interval: "interval"
    }
  }

  /// The text of a value; nil if the bytes have another length.
  func text(of value: Span<UInt8>) -> String? {
    let sizes: [Self: Int] = [.singleReal: 4, .date: 4, .interval: 16]
    guard value.count == sizes[self] ?? 8 else { return nil }
    switch self {
    case .singleReal:
      let single = Float(bitPattern: value.bigEndian(at: 0, as: UInt32.self))
      return single.isFinite ? "\(single)" : PostgresValue.text(of: Double(single))
    case .real:
      return PostgresValue.text(of: Double(bitPattern: value.bigEndian(at: 0, as: UInt64.self)))
    case .date:
      let days = value.bigEndian(at: 0, as: Int32.self)
      if let infinity = Self.infinity(days) { return infinity }
      let date = Self.date(Int64(days))
      return date.text + date.era
    case .timestamp, .timestampWithZone:
      let moment = value.bigEndian(at: 0, as: Int64.self)
      if let infinity = Self.infinity(moment) { return infinity }
      let day = moment.quotientAndRemainder(dividingBy: Self.microsecondsOfDay)
      let isBefore = day.remainder < 0
      let date = Self.date(day.quotient - (isBefore ? 1 : 0))
      let time = day.remainder + (isBefore ? Self.microsecondsOfDay : 0)
      let zone = self == .timestampWithZone ? "+00" : ""
      return "\(date.text) \(Self.time(time.magnitude))\(zone)\(date.era)"
    case .interval:
      return Self.interval(
        months: value.bigEndian(at: 12, as: Int32.self),
        days: value.bigEndian(at: 8, as: Int32.self),
        microseconds: value.bigEndian(at: 0, as: Int64.self)
      )
    }
  }

  private static let microsecondsOfDay: Int64 = 86_400_000_000

  private static func infinity<Integer: FixedWidthInteger>(_ value: Integer) -> String? {
    value == .max ? "infinity" : value == .min ? "-infinity" : nil
  }

  /// The date this many days after 1 January 2000, in the Gregorian calendar.
  private static func date(_ days: Int64) -> (text: String, era: String) {
    // In years that begin in March, so that a leap day is the last:
    // https://howardhinnant.github.io/date_algorithms.html
    let sinceMarch = days + 730_425
    let cycle = (sinceMarch >= 0 ? sinceMarch : sinceMarch - 146_096) / 146_097
    let day = sinceMarch - cycle * 146_097
    let yearOfCycle = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
    let dayOfYear = day - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    let year = yearOfCycle + cycle * 400 + (month <= 2 ? 1 : 0)
    let shown = padded(UInt64((year > 0 ? year : 1 - year).magnitude), 4)
    let dayOfMonth = dayOfYear - (153 * marchMonth + 2) / 5 + 1
    return (
      "\(shown)-\(padded(month.magnitude, 2))-\(padded(dayOfMonth.magnitude, 2))",
      year > 0 ? "" : " BC"
    )
  }

  private static func time(_ microseconds: UInt64) -> String {
    let seconds = microseconds / 1_000_000
    var text =
      "\(padded(seconds / 3_600, 2)):\(padded(seconds / 60 % 60, 2)):\(padded(seconds % 60, 2))"
    let fraction = microseconds % 1_000_000
    guard fraction > 0 else { return text }
    text += "." + padded(fraction, 6)
    while text.last == "0" { text.removeLast() }
    return text
  }

  private static func interval(months: Int32, days: Int32, microseconds: Int64) -> String {
    if months == .max, days == .max, microseconds == .max { return "infinity" }
    if months == .min, days == .min, microseconds == .min { return "-infinity" }
    var parts: [String] = []
    // A sign applies to its own part only.
    var isAfterNegative = false
    for (value, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")]
    where value != 0 {
      let sign = isAfterNegative && value > 0 ? "+" : ""
      parts.append("\(sign)\(value) \(unit)\(value == 1 ? "" : "s")")
      isAfterNegative = value < 0
    }
    if microseconds != 0 || parts.isEmpty {
      let sign = microseconds < 0 ? "-" : isAfterNegative ? "+" : ""
      parts.append(sign + time(microseconds.magnitude))
    }
    return parts.joined(separator: " ")
  }

  private static func padded(_ number: UInt64, _ count: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, count - digits.count)) + digits
  }
}
#endif
