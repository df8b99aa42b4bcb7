/// How fast a process works, from the last minute of its work.
///
/// A pace that the settings impose is work; time on hold for any other reason is not.
package struct WorkSpeed: Sendable {
  private struct Sample {
    /// The time worked by then.
    var worked: Duration
    /// The number of identifiers done by then.
    var done: Int
  }

  private static let window = Duration.seconds(60)
  /// Samples are this far apart, so that a minute has about as many.
  private static let step = Duration.seconds(1)
  /// How long a changed setting must have been in force before its effect is measured.
  private static let trial = Duration.seconds(2)

  /// One a second over the last minute, and the one before it.
  private var samples = [Sample(worked: .zero, done: 0)]
  /// The speed before the settings changed.
  private var before: Double?
  /// When the effect of changed settings has been measured, in time worked.
  private var trialEnd = Duration.zero
  /// The most identifiers per second that the settings allow.
  private var pace: Double?

  package init() {}

  var sampleCount: Int { samples.count }

  /// Notes how many identifiers are done after so much work.
  package mutating func note(_ done: Int, after worked: Duration) {
    let sample = Sample(worked: worked, done: done)
    if samples.count > 1, let last = samples.last,
      worked - samples[samples.count - 2].worked < Self.step,
      last.worked <= worked
    {
      samples[samples.count - 1] = sample
    } else {
      samples.append(sample)
    }
    // Two always stay, however long a chunk takes.
    while samples.count > 2, samples[1].worked <= worked - Self.window { samples.removeFirst() }
  }

  /// Measures from now on, since settings have changed.
  ///
  /// Until that is measured, the earlier speed counts as far as the pace allows; none counts without a pace, or
  /// if a lower one held the work back.
  package mutating func tune(pace: Double?, after worked: Duration) {
    let speed = perSecond(after: worked)
    let wasHeldBack = speed.map { $0 > 0.9 * (self.pace ?? .infinity) } ?? false
    before = wasHeldBack && pace ?? .infinity > self.pace ?? .infinity || pace == nil ? nil : speed
    self.pace = pace
    guard worked > .zero, samples.last?.done ?? 0 > 0 else { return }
    samples = [Sample(worked: worked, done: samples.last?.done ?? 0)]
    trialEnd = worked + Self.trial
  }

  /// The identifiers done per second; nil if that is not known yet.
  package func perSecond(after worked: Duration) -> Double? {
    guard let first = samples.first, let last = samples.last else { return nil }
    let time = worked - first.worked
    var speed = before
    if last.done > first.done, time > .zero, worked >= trialEnd {
      speed = Double(last.done - first.done) / (time / .seconds(1))
    }
    return speed.map { min($0, pace ?? .infinity) }
  }
}
