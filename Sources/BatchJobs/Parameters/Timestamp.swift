import BatchRuns

struct Timestamp: Hashable, CustomStringConvertible {
  let date: CalendarDate
  let secondOfDay: Int
  /// The decimals of the second, without trailing zeros.
  let fraction: String

  /// Parses `YYYY-MM-DDTHH:MM[:SS[.fraction]][zone]`, or a date alone.
  ///
  /// The zone is `Z`, `+HH:MM`, `+HHMM` or `+HH`; without a zone, the time is UTC. A space may
  /// replace the `T`, as in SQLite's own functions.
  init(parsing text: String) throws(ParameterFault) {
    let parts = text.split(maxSplits: 1, omittingEmptySubsequences: false) {
      $0 == "T" || $0 == "t" || $0 == " "
    }
    let local = try CalendarDate(parsing: parts[0])
    guard parts.count == 2 else {
      (date, secondOfDay, fraction) = (local, 0, "")
      return
    }
    let zoneStart = parts[1].firstIndex { "Zz+-".contains($0) } ?? parts[1].endIndex
    let offset = try Self.secondsEastOfUTC(parts[1][zoneStart...])
    let (seconds, fraction) = try Self.time(parts[1][..<zoneStart])

    let shifted = local.daysSinceMarchOfYearZero * 86_400 + seconds - offset
    let days = (shifted >= 0 ? shifted : shifted - 86_399) / 86_400
    guard let date = CalendarDate(daysSinceMarchOfYearZero: days) else {
      throw ParameterFault("in UTC it is outside of the years 0000 to 9999")
    }
    self.date = date
    self.secondOfDay = shifted - days * 86_400
    self.fraction = fraction
  }

  private static func time(
    _ text: Substring
  ) throws(ParameterFault) -> (seconds: Int, fraction: String) {
    let halves = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let parts = halves[0].split(separator: ":", omittingEmptySubsequences: false)
    let numbers = parts.compactMap { Int(digits: $0, count: 2) }
    guard (2...3).contains(parts.count), numbers.count == parts.count,
      halves.count == 1 || parts.count == 3
    else { throw ParameterFault("the time is not HH:MM:SS") }
    guard numbers[0] < 24 else { throw ParameterFault("there is no hour \(parts[0])") }
    guard numbers[1] < 60 else { throw ParameterFault("there is no minute \(parts[1])") }
    guard numbers.count == 2 || numbers[2] < 60 else {
      throw ParameterFault("there is no second \(parts[2])")
    }
    var fraction = halves.count == 2 ? halves[1] : ""
    guard halves.count == 1 || (1...9).contains(fraction.utf8.count),
      fraction.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { throw ParameterFault("the fraction of the second is not of one to nine digits") }
    while fraction.last == "0" { fraction.removeLast() }
    let seconds = numbers[0] * 3600 + numbers[1] * 60 + (numbers.count == 3 ? numbers[2] : 0)
    return (seconds, String(fraction))
  }

  private static func secondsEastOfUTC(_ text: Substring) throws(ParameterFault) -> Int {
    if text.isEmpty || text == "Z" || text == "z" { return 0 }
    let fault = ParameterFault("the zone is not Z or +HH:MM")
    let digits = text.dropFirst()
    let hours = Int(digits: digits.prefix(2), count: 2)
    var rest = digits.dropFirst(2)
    if rest.first == ":", rest.count == 3 { rest = rest.dropFirst() }
    let minutes = rest.isEmpty && digits.count == 2 ? 0 : Int(digits: rest, count: 2)
    guard let hours, let minutes, hours < 24, minutes < 60 else { throw fault }
    return (text.first == "-" ? -1 : 1) * (hours * 3600 + minutes * 60)
  }

  var description: String {
    let hour = (secondOfDay / 3600).padded(to: 2)
    let minute = (secondOfDay / 60 % 60).padded(to: 2)
    let second = (secondOfDay % 60).padded(to: 2)
    return "\(date)T\(hour):\(minute):\(second)\(fraction.isEmpty ? "" : ".\(fraction)")Z"
  }
}
