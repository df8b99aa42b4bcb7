#if PostgreSQL
import BatchJobs

/// Ends what a process waits for on the server, after a request to stop; chunks in flight may
/// finish first, so not all connections end at once.
package struct TableRunStop: Sendable {
  /// How long after a request the process may still record on the server how it ends.
  ///
  /// This is longer than the grace of chunks in flight, and short enough for the process to end
  /// within five seconds.
  private static let grace = Duration.milliseconds(3_500)
  /// The same after the chunks, however the run was stopped.
  private static let farewell = Duration.seconds(1)

  package let waits: ServerWaits
  /// Interrupts what precedes the chunks.
  let opening: PostgresInterrupter
  /// Interrupts everything else.
  let closing: PostgresInterrupter

  init(_ waits: ServerWaits) {
    self.waits = waits
    opening = PostgresInterrupter(telling: waits)
    closing = PostgresInterrupter(telling: waits)
  }

  /// Ends what precedes the chunks now, and everything else after the grace.
  package func request() {
    opening.interrupt()
    close(after: Self.grace)
  }

  /// Leaves only a moment for the end, since no chunk is in flight any more.
  func hasStopped() { close(after: Self.farewell) }

  func rest(_ time: Duration) async {
    let end = ContinuousClock.now + time
    while ContinuousClock.now < end, !opening.isInterrupted {
      try? await Task.sleep(for: min(.milliseconds(100), ContinuousClock.now.duration(to: end)))
    }
  }

  private func close(after time: Duration) {
    Task { [closing] in
      try? await Task.sleep(for: time)
      closing.interrupt()
    }
  }
}
#endif
