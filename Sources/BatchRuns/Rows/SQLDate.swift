package import BatchPlatform

/// A date in the Gregorian calendar and UTC, in microseconds since 1970.
package struct SQLDate {
  private static let microsecondsOfDay: Int64 = 86_400_000_000

  package let microseconds: Int64

  /// Nil outside the years 1 to 9999.
  package init?(_ date: Date) {
    let microseconds = (date.timeIntervalSince1970 * 1_000_000).rounded()
    guard (-62_135_596_800_000_000..<253_402_300_800_000_000).contains(microseconds) else {
      return nil
    }
    self.microseconds = Int64(microseconds)
  }

  /// Parses `yyyy-MM-dd`, optionally followed by ` HH:mm[:ss[.f…]]`.
  package init?(_ text: String) {
    var rest = text.utf8[...]
    func number(_ digits: Int) -> Int64? {
      let text = rest.prefix(digits)
      guard text.count == digits, text.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return nil
      }
      rest.removeFirst(digits)
      return text.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    func take(_ byte: Unicode.Scalar) -> Bool {
      guard rest.first == UInt8(byte.value) else { return false }
      rest.removeFirst()
      return true
    }
    guard let year = number(4), take("-"), let month = number(2), take("-"), let day = number(2),
      year > 0, (1...12).contains(month), (1...Self.length(ofMonth: month, year)).contains(day)
    else { return nil }
    var seconds: Int64 = 0
    var fraction: Int64 = 0
    if take(" ") || take("T") {
      guard let hour = number(2), hour < 24, take(":"), let minute = number(2), minute < 60 else {
        return nil
      }
      seconds = hour * 3600 + minute * 60
      if take(":") {
        guard let second = number(2), second < 60 else { return nil }
        seconds += second
        if take(".") {
          let digits = rest.prefix { (0x30...0x39).contains($0) }
          guard !digits.isEmpty else { return nil }
          rest.removeFirst(digits.count)
          for index in 0..<6 {
            let place = digits.index(digits.startIndex, offsetBy: index, limitedBy: digits.endIndex)
            let digit = place.flatMap { $0 < digits.endIndex ? digits[$0] : nil } ?? 0x30
            fraction = fraction * 10 + Int64(digit - 0x30)
          }
        }
      }
      _ = take("Z")
    }
    guard rest.isEmpty else { return nil }
    let days = Self.days(year, month, day)
    microseconds = days * Self.microsecondsOfDay + seconds * 1_000_000 + fraction
  }

  package var date: Date {
    // Both parts are exact, and so few microseconds need no rounding.
    let (seconds, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return Date(timeIntervalSince1970: Double(seconds) + Double(rest) / 1_000_000)
  }

  /// The days since 1970, if it is midnight.
  package var wholeDays: Int64? {
    let (days, rest) = microseconds.quotientAndRemainder(dividingBy: Self.microsecondsOfDay)
    return rest == 0 ? days : nil
  }

  /// `yyyy-MM-dd`, if it is midnight.
  package var day: String? {
    microseconds % Self.microsecondsOfDay == 0 ? text(ofDay: microseconds) : nil
  }

  /// `yyyy-MM-dd HH:mm:ss`, with six digits of fractional seconds if there are any.
  package var dateTime: String {
    let time =
      (microseconds % Self.microsecondsOfDay + Self.microsecondsOfDay)
      % Self.microsecondsOfDay
    let (seconds, parts) = time.quotientAndRemainder(dividingBy: 1_000_000)
    let clock = [seconds / 3600, seconds / 60 % 60, seconds % 60].map { Self.padded($0, 2) }
    let fraction = parts == 0 ? "" : ".\(Self.padded(parts, 6))"
    return "\(text(ofDay: microseconds)) \(clock.joined(separator: ":"))\(fraction)"
  }

  private func text(ofDay microseconds: Int64) -> String {
    var days = microseconds / Self.microsecondsOfDay
    if microseconds % Self.microsecondsOfDay < 0 { days -= 1 }
    // https://howardhinnant.github.io/date_algorithms.html#civil_from_days
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let part = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * part + 2) / 5 + 1
    let month = part < 10 ? part + 3 : part - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))"
  }

  /// The days since 1970: https://howardhinnant.github.io/date_algorithms.html#days_from_civil.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = shifted / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func length(ofMonth month: Int64, _ year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  private static func padded(_ number: Int64, _ digits: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: Swift.max(0, digits - text.count)) + text
  }
}
