package import BatchIdentifiers

/// A stop of a run, visible to code that waits in the run's tasks for a lock or a program.
package final class RunStop: Sendable {
  /// The stop of the current task's run; nil outside of runs.
  @TaskLocal package static var current: RunStop?

  /// How long chunks in flight may take to finish after a stop.
  ///
  /// A stopped run ends within five seconds, and the steps after its chunks take time too.
  package static let grace = Duration.seconds(3)
  /// How long after a stop the hooks of the run may take.
  package static let hookGrace = Duration.milliseconds(4500)

  private let time = Lock<ContinuousClock.Instant?>(nil)

  package init() {}

  package func begin() { time.withLock { $0 = $0 ?? .now } }

  /// Whether the current task's run was stopped and this time has passed since then.
  package static func isOver(after grace: Duration = grace) -> Bool {
    guard let time = current?.time.withLock({ $0 }) else { return false }
    return time + grace <= .now
  }

  /// The error of a wait that the stop ends.
  package static func interruption(of what: String) -> BatchError {
    BatchError(.interrupted, "\(what) was interrupted, since the run was told to stop")
  }
}
