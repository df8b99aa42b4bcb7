import SystemPackage

/// Decides whether a run is held back, and why.
///
/// It looks at nothing itself: what was committed and how things stand is told, with the time since
/// the run began. The first reason that is true counts, those that an operator sets before those that
/// pass by themselves.
package struct RunThrottle {
  /// How things stand beside the run.
  package struct Conditions: Hashable {
    /// Whether the flag file exists.
    package var isFlagged = false
    /// Whether an operator has paused the run.
    package var isPaused = false
    /// The free space of the database's file system, in bytes, if it is known.
    package var freeDisk: Int64?
    /// The minute of the day in local time.
    package var minuteOfDay = 0
    /// What the store itself has against going on.
    package var storeHold: StoreHold?
  }

  /// A reason of the store to wait, in its own words.
  package struct StoreHold: Hashable, Sendable {
    /// A short name of what holds.
    package let name: String
    package let reason: String

    package init(_ name: String, _ reason: String) {
      self.name = name
      self.reason = reason
    }
  }

  /// Why the run is held back, and for how long at least.
  package struct Hold: Hashable {
    /// The key of the job that asks for it, the command, or what the store calls it.
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
    /// The reason as it is shown.
    package let reason: String
    /// When to look again, which is soon: an operator may ask for something else meanwhile.
    package let duration: Duration
    /// How many identifiers a second are let through, if that is what holds.
    package var rate: Double?

    /// Whether it is over by itself after its duration: the run goes on, more slowly.
    package var isPace: Bool { cause == .identifiersPerSecond || cause == .sleepRatio }
  }

  /// How long it may take until a condition that has changed is noticed.
  package static let lookInterval = Duration.milliseconds(100)
  /// How much time that was lost with waking up too late is made up for.
  private static let slack = Duration.milliseconds(100)

  /// What the job wants, which may change while it runs.
  package var settings: RunPolicy.Throttle {
    didSet {
      // A debt by the old pace is none by the new one.
      if settings.identifiersPerSecond != oldValue.identifiersPerSecond { due = .zero }
      if settings.sleepRatio != oldValue.sleepRatio { rested = .zero }
    }
  }
  /// When the next identifiers may be committed, by the rate.
  private var due = Duration.zero
  /// When the rest after the last chunk is over.
  private var rested = Duration.zero
  /// The length of the write-ahead log, in bytes.
  package var logBytes = 0

  /// Who keeps the log from being emptied, and what there is to do.
  private let logRemedy: String

  /// A throttle as a policy wants it.
  package init(_ throttle: RunPolicy.Throttle, logRemedy: String = "") {
    settings = throttle
    self.logRemedy = logRemedy
  }

  /// Whether the time of a chunk decides when the next one may be committed.
  package var setsPace: Bool { settings.identifiersPerSecond != nil || settings.sleepRatio != nil }

  /// Takes note of a committed chunk, which took so long.
  package mutating func committed(_ count: Int, took duration: Duration, at now: Duration) {
    if let rate = settings.identifiersPerSecond {
      due = max(due, now - Self.slack) + .seconds(Double(count) / rate)
    }
    if let ratio = settings.sleepRatio { rested = now + duration * ratio }
  }

  /// Why the run stops now, or nil: its hours are over, and it does not wait for the next.
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
      return hold(.maximumWAL, "the write-ahead log is longer than \(bound); \(logRemedy)")
    }
    if let rate = settings.identifiersPerSecond, now < due {
      let number = Int(exactly: rate).map { "\($0)" } ?? "\(rate)"
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
