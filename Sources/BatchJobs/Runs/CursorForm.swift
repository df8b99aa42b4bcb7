import BatchRuns
package import BatchIdentifiers

/// The form in which a column of SQLite has times, so that a moment can be compared with them.
package enum CursorForm: Hashable, Sendable {
  /// Text such as `2026-11-29 08:30:00`: as far as this many characters, a moment sorts as its text does, with
  /// this separator. Fractions and the zone of UTC may follow.
  case text(length: Int, separator: Character)
  /// A number of units since 1970, or since another second.
  case number(unitsPerSecond: Int64, since: Int64)

  /// The first second of Core Data's times, 2001-01-01, since 1970.
  private static let referenceDate: Int64 = 978_307_200

  /// The form of a value; nil if it is no time.
  ///
  /// A number is told by its size: each unit has the numbers of the years from 1973 to 5138, so that no two units
  /// have one in common.
  package init?(_ value: KeyComponent, isCoreData: Bool) {
    let number: Double
    switch value {
    case .integer(let value): number = Double(value)
    case .real(let value): number = value
    case .text(let text):
      let form =
        /\d{4}-\d\d-\d\d(?:(?<separator>[ T])\d\d:\d\d(?<seconds>:\d\d(\.\d+)?)?(Z|\+00:00)?)?/
        .asciiOnlyDigits()
      guard let match = text.wholeMatch(of: form) else { return nil }
      guard let separator = match.separator?.first else {
        self = .text(length: 10, separator: " ")
        return
      }
      self = .text(length: match.seconds == nil ? 16 : 19, separator: separator)
      return
    case .null, .blob, .invalidText: return nil
    }
    if isCoreData {
      self = .number(unitsPerSecond: 1, since: Self.referenceDate)
      return
    }
    let units: [(limit: Double, perSecond: Int64)] = [
      (1e11, 1), (1e14, 1000), (1e17, 1_000_000), (.infinity, 1_000_000_000),
    ]
    let unit = units.first { abs(number) < $0.limit }?.perSecond ?? 1
    self = .number(unitsPerSecond: unit, since: 0)
  }

  /// The first value of the unit that a moment is in, which is given in microseconds since 1970.
  package func value(at microseconds: Int64) -> KeyComponent {
    switch self {
    case .number(1_000_000_000, let start):
      return .integer((microseconds - start * 1_000_000) * 1000)
    case .number(let unitsPerSecond, let start):
      let length = 1_000_000 / unitsPerSecond
      return .integer(Self.floor(microseconds - start * 1_000_000, by: length))
    case .text(let length, let separator):
      let seconds = Self.floor(microseconds, by: 1_000_000)
      let day = Self.floor(seconds, by: 86_400)
      let second = Int(seconds - day * 86_400)
      // 1970-01-01 is 719,468 days after 0000-03-01.
      let date = CalendarDate(daysSinceMarchOfYearZero: Int(day) + 719_468)
      let parts = [second / 3600, second / 60 % 60, second % 60].map { $0.padded(to: 2) }
      let text = "\(date?.description ?? "9999-12-31")\(separator)\(parts.joined(separator: ":"))"
      return .text(String(text.prefix(length)))
    }
  }

  private static func floor(_ number: Int64, by divisor: Int64) -> Int64 {
    let quotient = number / divisor
    return number % divisor < 0 ? quotient - 1 : quotient
  }

  /// The form in SQLite's SQL, as a condition on a column that has times in it; nil for numbers, whose form the
  /// smallest and the largest one tell.
  package func condition(on column: String) -> String? {
    guard case .text(let length, let separator) = self else { return nil }
    let digits = { (count: Int) in String(repeating: "[0-9]", count: count) }
    let time = [":", ":"].reduce(digits(2)) { text, colon in text + colon + digits(2) }
    let date = [digits(4), digits(2), digits(2)].joined(separator: "-")
    let all = "\(date)\(separator)\(time)"
    // A digit's pattern has five characters.
    let pattern = length == 10 ? date : length == 16 ? String(all.dropLast(11)) : all
    let rest = "ltrim(substr(\(column), \(length + 1)), '\(length == 19 ? ".0123456789" : "")')"
    let zones = length == 10 ? "('')" : "('', 'Z', '+00:00')"
    return
      "typeof(\(column)) = 'text' AND substr(\(column), 1, \(length)) GLOB '\(pattern)' AND \(rest) IN \(zones)"
  }
}
