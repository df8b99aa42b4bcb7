package import BatchIdentifiers

/// A daily time window in local time, which may cross midnight: `22:00-06:00`.
public struct DailyWindow: Hashable, Sendable, CustomStringConvertible {
  private static let minutesOfDay = 24 * 60

  /// The first minute of the window, counted from midnight.
  public let start: Int
  /// The minute after the last one of the window, counted from midnight.
  public let end: Int

  /// Makes a window from minutes of the day; returns nil if they are equal or out of range.
  public init?(from start: Int, until end: Int) {
    guard (0..<Self.minutesOfDay).contains(start), (0...Self.minutesOfDay).contains(end),
      start != end
    else { return nil }
    self.start = start
    self.end = end
  }

  /// Parses a window such as `22:00-06:00`; the error has no location.
  package init(parsing text: String) throws(BatchError) {
    let times = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.minute)
    guard times.count == 2, let start = times[0], let end = times[1],
      let window = DailyWindow(from: start, until: end)
    else {
      throw BatchError(
        .invalidJob,
        "\(text.quotedForMessage) is not a part of the day",
        remedy: "write two different times, such as \"22:00-06:00\""
      )
    }
    self = window
  }

  private static func minute(_ text: Substring) -> Int? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2,
      parts.allSatisfy({ $0.count == 2 && $0.allSatisfy { $0.isASCII && $0.isNumber } }),
      let hours = Int(parts[0]), let minutes = Int(parts[1]), minutes < 60
    else { return nil }
    return hours * 60 + minutes
  }

  package var minutes: Int { start < end ? end - start : Self.minutesOfDay - start + end }

  /// Returns whether the window contains a minute of the day.
  public func contains(minuteOfDay minute: Int) -> Bool {
    start < end ? (start..<end).contains(minute) : minute >= start || minute < end
  }

  /// The window as a job file writes it.
  public var description: String {
    func text(_ minute: Int) -> String {
      [minute / 60, minute % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
    return "\(text(start))-\(text(end))"
  }
}
