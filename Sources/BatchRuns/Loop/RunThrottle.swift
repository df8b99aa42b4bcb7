import BatchIdentifiers
import SystemPackage

/// Decides whether a run is held back, and why.
///
/// It checks nothing itself: the caller passes commits, conditions, and the time since the run
/// began. The first true reason counts, those set by an operator before those that pass by
/// themselves.
package struct RunThrottle {
  /// The conditions around the run.
  package struct Conditions: Hashable {
    /// Whether the flag file exists.
    package var isFlagged = false
    /// Whether an operator has paused the run.
    package var isPaused = false
    /// The free space on the database's file system, in bytes; nil if unknown.
    package var freeDisk: Int64?
    /// The minute of the day in local time.
    package var minuteOfDay = 0
    /// Why the store itself wants the run to wait.
    package var storeHold: StoreHold?
    /// How many workers the store has room for, one at least; nil for any number.
    package var workers: Int?
  }

  /// A store's reason to wait, in its own words.
  package struct StoreHold: Hashable, Sendable {
    /// A short name of the reason.
    package let name: String
    package let reason: String

    package init(_ name: String, _ reason: String) {
      self.name = name
      self.reason = reason
    }
  }

  /// Why the run is held back, and for how long at least.
  package struct Hold: Hashable {
    /// The job's key or the command that asks for it, or the store's name for it.
    package struct Cause: RawRepresentable, Hashable {
      package let rawValue: String

      package init(rawValue: String) {
        self.rawValue = rawValue
      }

      package static let pause = Self(rawValue: "pause")
      package static let flagFile = Self(rawValue: "flagFile")
      package static let window = Self(rawValue: "window")
      package static let minimumFreeDisk = Self(rawValue: "minimumFreeDisk")
      package static let maximumWAL = Self(rawValue: "maximumWAL")
      package static let identifiersPerSecond = Self(rawValue: "identifiersPerSecond")
      package static let sleepRatio = Self(rawValue: "sleepRatio")
    }

    package let cause: Cause
    /// The reason as shown.
    package let reason: String
    /// When to check again; soon, since an operator may change the settings.
    package let duration: Duration
    /// The identifiers per second that a pace allows.
    package var rate: Double?
    /// Whether the reason is known to be the right one; a log that is too long may only have to be emptied.
    package var isKnown = true

    /// Whether it ends by itself: the run continues, only more slowly.
    package var isPace: Bool { cause == .identifiersPerSecond || cause == .sleepRatio }
  }

  /// How long a changed condition may go unnoticed.
  package static let lookInterval = Duration.milliseconds(100)
  /// How much time lost by late wake-ups is made up for.
  private static let slack = Duration.milliseconds(100)

  /// The settings, which may change during the run.
  package var settings: RunPolicy.Throttle {
    didSet {
      // A delay due to the old rate does not apply to the new one.
      if settings.identifiersPerSecond != oldValue.identifiersPerSecond { due = .zero }
      if settings.sleepRatio != oldValue.sleepRatio { rested = .zero }
    }
  }
  /// When the rate allows the next identifiers to be committed.
  private var due = Duration.zero
  /// When the rest after the last chunk ends.
  private var rested = Duration.zero
  /// The length of the write-ahead log, in bytes.
  package var logBytes = 0 {
    didSet { if logBytes <= settings.maximumWAL { logIsBlocked = false } }
  }
  /// Whether the log is too long although the run has tried to empty it.
  private var logIsBlocked = false

  /// Who may keep the log from being emptied, and what to do about it.
  private let logRemedy: String

  package init(_ throttle: RunPolicy.Throttle, logRemedy: String = "") {
    settings = throttle
    self.logRemedy = logRemedy
  }

  /// Whether the time of a chunk determines when the next one may be committed.
  package var setsPace: Bool { settings.identifiersPerSecond != nil || settings.sleepRatio != nil }

  /// Notes how long the log still is although the run has tried to empty it.
  package mutating func emptiedLog(to bytes: Int) {
    logBytes = bytes
    logIsBlocked = bytes > settings.maximumWAL
  }

  /// Notes a committed chunk and how long it took.
  package mutating func committed(_ count: Int, took duration: Duration, at now: Duration) {
    if let rate = settings.identifiersPerSecond {
      due = max(due, now - Self.slack) + .seconds(Double(count) / rate)
    }
    if let ratio = settings.sleepRatio { rested = now + duration * ratio }
  }

  /// Why the run stops now, or nil: its hours are over, and it is not to wait for the next.
  package func end(_ conditions: Conditions) -> String? {
    guard settings.outsideWindow == .stop, let window = settings.window,
      !window.contains(minuteOfDay: conditions.minuteOfDay)
    else { return nil }
    return "throttle.window: it is not \(window)"
  }

  /// Why nothing may be done now, or nil.
  package func hold(at now: Duration, _ conditions: Conditions) -> Hold? {
    func hold(_ cause: Hold.Cause, _ reason: String, until end: Duration? = nil) -> Hold {
      Hold(
        cause: cause,
        reason: "\(cause.rawValue): \(reason)",
        duration: min(end.map { $0 - now } ?? Self.lookInterval, Self.lookInterval)
      )
    }
    if conditions.isPaused { return hold(.pause, "until batch resume") }
    if let file = settings.flagFile, conditions.isFlagged {
      return hold(.flagFile, "\(file.string) exists")
    }
    if let window = settings.window, !window.contains(minuteOfDay: conditions.minuteOfDay) {
      return hold(.window, "it is not \(window)")
    }
    if let minimum = settings.minimumFreeDisk, let free = conditions.freeDisk, free < minimum {
      return hold(
        .minimumFreeDisk,
        "\(ByteSize(bytes: free)) are free, less than \(ByteSize(bytes: minimum))"
      )
    }
    if let own = conditions.storeHold { return hold(.init(rawValue: own.name), own.reason) }
    if logBytes > settings.maximumWAL {
      let bound = ByteSize(bytes: settings.maximumWAL)
      var hold = hold(.maximumWAL, "the write-ahead log is longer than \(bound); \(logRemedy)")
      hold.isKnown = logIsBlocked
      return hold
    }
    if let rate = settings.identifiersPerSecond, now < due {
      let number = Int(exactly: rate).map { $0.grouped } ?? "\(rate)"
      var hold = hold(.identifiersPerSecond, "at most \(number) a second", until: due)
      hold.rate = rate
      return hold
    }
    if let ratio = settings.sleepRatio, now < rested {
      return hold(.sleepRatio, "\(ratio) of the time of a chunk", until: rested)
    }
    return nil
  }
}
