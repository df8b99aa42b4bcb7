package import BatchIdentifiers

/// That a run was told to stop, for whatever waits in the run's tasks: for a lock, for a program.
package final class RunStop: Sendable {
  /// The stop of the current task's run; nil outside of runs.
  @TaskLocal package static var current: RunStop?

  /// How long after it chunks in flight may take to finish.
  ///
  /// A run ends within five seconds, and what comes after its chunks takes time too.
  package static let grace = Duration.seconds(3)
  /// How long after it the programs to notify about the run may run.
  package static let hookGrace = Duration.milliseconds(4500)

  private let time = Lock<ContinuousClock.Instant?>(nil)

  package init() {}

  /// Notes that the run is to stop.
  package func begin() { time.withLock { $0 = $0 ?? .now } }

  /// Whether the current task's run was told to stop, and a time has passed since.
  package static func isOver(after grace: Duration = grace) -> Bool {
    guard let time = current?.time.withLock({ $0 }) else { return false }
    return time + grace <= .now
  }

  /// The error of a wait that ends because of that.
  package static func interruption(of what: String) -> BatchError {
    BatchError(.interrupted, "\(what) was interrupted, since the run was told to stop")
  }
}
