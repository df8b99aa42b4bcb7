import BatchIdentifiers
import SystemPackage

/// Decides whether a run is held back, and why.
///
/// It checks nothing itself: the caller passes commits, conditions, and the time since the run
/// began. The first true reason applies; reasons set by an operator precede those that pass by
/// themselves.
package struct RunThrottle {
  package struct Conditions: Hashable {
    package var isFlagged = false
    package var isPaused = false
    /// The free space on the database's file system, in bytes; nil if unknown.
    package var freeDisk: Int64?
    /// In local time.
    package var minuteOfDay = 0
    /// Why the store itself makes the run wait.
    package var storeHold: StoreHold?
    /// The number of workers that the store has room for, at least one; nil for any number.
    package var workers: Int?
  }

  package struct StoreHold: Hashable, Sendable {
    package let name: String
    package let reason: String

    package init(_ name: String, _ reason: String) {
      self.name = name
      self.reason = reason
    }
  }

  /// Why the run is held back, and for how long at least.
  package struct Hold: Hashable {
    /// The key of a job, a command, or a store's name for its reason.
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
      package static let approval = Self(rawValue: "approval")
      package static let canary = Self(rawValue: "canary")
    }

    package let cause: Cause
    package let reason: String
    /// The time until the next check; short, since an operator may change the settings.
    package let duration: Duration
    /// The identifiers per second that a pace allows.
    package var rate: Double?
    /// Whether the reason is certain; a log that is too long may only need to be emptied.
    package var isKnown = true

    /// The hold of a process that waits at a gate.
    package init(at cause: Cause, _ reason: String) {
      self.init(
        cause: cause,
        reason: "\(cause.rawValue): \(reason)",
        duration: RunThrottle.lookInterval
      )
    }

    fileprivate init(cause: Cause, reason: String, duration: Duration) {
      (self.cause, self.reason, self.duration) = (cause, reason, duration)
    }

    /// Whether the hold ends by itself, so that the run only becomes slower.
    package var isPace: Bool { cause == .identifiersPerSecond || cause == .sleepRatio }
  }

  /// The maximum time before a changed condition is noticed.
  package static let lookInterval = Duration.milliseconds(100)
  /// The maximum time lost by late wake-ups that is made up for.
  private static let slack = Duration.milliseconds(100)

  /// May change during the run.
  package var settings: RunPolicy.Throttle {
    didSet {
      // A delay computed from the old rate does not apply to the new one.
      if settings.identifiersPerSecond != oldValue.identifiersPerSecond { due = .zero }
      if settings.sleepRatio != oldValue.sleepRatio { rested = .zero }
    }
  }
  /// When the rate allows the next commit.
  private var due = Duration.zero
  /// When the rest after the last chunk ends.
  private var rested = Duration.zero
  /// The length of the write-ahead log, in bytes.
  package var logBytes = 0 {
    didSet { if logBytes <= settings.maximumWAL { logIsBlocked = false } }
  }
  /// Whether the log is too long even though the run has tried to empty it.
  private var logIsBlocked = false

  /// What may keep the log from being emptied, and how to fix it.
  private let logRemedy: String

  package init(_ throttle: RunPolicy.Throttle, logRemedy: String = "") {
    settings = throttle
    self.logRemedy = logRemedy
  }

  /// Whether the duration of a chunk affects when the next one may be committed.
  package var setsPace: Bool { settings.identifiersPerSecond != nil || settings.sleepRatio != nil }

  /// Records the length of the log after the run has tried to empty it.
  package mutating func emptiedLog(to bytes: Int) {
    logBytes = bytes
    logIsBlocked = bytes > settings.maximumWAL
  }

  /// Records a committed chunk and how long it took.
  package mutating func committed(_ count: Int, took duration: Duration, at now: Duration) {
    if let rate = settings.identifiersPerSecond {
      due = max(due, now - Self.slack) + .seconds(Double(count) / rate)
    }
    if let ratio = settings.sleepRatio { rested = now + duration * ratio }
  }

  /// What would become of a run that begins now, in words; nil if nothing holds it.
  package func words(at conditions: Conditions) -> String? {
    if let reason = end(conditions) { return "a run that begins now stops at once (\(reason))" }
    guard let hold = hold(at: .zero, conditions), !hold.isPace else { return nil }
    return "a run that begins now waits (\(hold.reason))"
  }

  /// Why the run stops now, or nil: it is outside its window, and `outsideWindow` is `stop`.
  package func end(_ conditions: Conditions) -> String? {
    guard settings.outsideWindow == .stop, let window = settings.window,
      !window.contains(minuteOfDay: conditions.minuteOfDay)
    else { return nil }
    return "throttle.window: it is not \(window)"
  }

  /// Why the run must wait now, or nil.
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
