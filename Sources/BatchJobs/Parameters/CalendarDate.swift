import BatchRuns

/// A day in the proleptic Gregorian calendar, from year 0000 to 9999.
struct CalendarDate: Hashable, CustomStringConvertible {
  let year: Int
  let month: Int
  let day: Int

  /// Parses `YYYY-MM-DD`.
  init(parsing text: some StringProtocol) throws(ParameterFault) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, let year = Int(digits: parts[0], count: 4),
      let month = Int(digits: parts[1], count: 2), let day = Int(digits: parts[2], count: 2)
    else { throw ParameterFault() }
    guard (1...12).contains(month) else { throw ParameterFault("there is no month \(parts[1])") }
    let length = Self.length(ofMonth: month, year: year)
    guard (1...length).contains(day) else {
      throw ParameterFault("\(parts[0])-\(parts[1]) has \(length) days")
    }
    (self.year, self.month, self.day) = (year, month, day)
  }

  /// The day this many days after 0000-03-01; nil outside the years 0000 to 9999.
  init?(daysSinceMarchOfYearZero days: Int) {
    // If years begin in March, they end with the leap day, which makes months a linear function.
    let era = (days >= 0 ? days : days - 146_096) / 146_097
    let dayOfEra = days - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    guard (0...9999).contains(year) else { return nil }
  }

  var daysSinceMarchOfYearZero: Int {
    let marchYear = month <= 2 ? year - 1 : year
    let era = (marchYear >= 0 ? marchYear : marchYear - 399) / 400
    let yearOfEra = marchYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
  }

  static func length(ofMonth month: Int, year: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  var description: String {
    "\(year.padded(to: 4))-\(month.padded(to: 2))-\(day.padded(to: 2))"
  }
}

extension Int {
  /// Parses exactly this many decimal digits and nothing else.
  init?(digits: some StringProtocol, count: Int) {
    guard digits.utf8.count == count, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    self.init(digits)
  }

  func padded(to count: Int) -> String {
    let text = String(self)
    return String(repeating: "0", count: Swift.max(0, count - text.count)) + text
  }
}
