#if PostgreSQL
import BatchJobs

/// The end of what a process waits for on the server, after a request to stop.
///
/// Chunks in flight may finish first, so it is not the end of all connections at once.
package struct TableRunStop: Sendable {
  /// How long after a request the process may still tell the server how it ends.
  ///
  /// It is longer than the grace of chunks in flight, and short enough for the process to end within five seconds.
  private static let grace = Duration.milliseconds(3_500)
  /// The same after the chunks, whoever has stopped the run.
  private static let farewell = Duration.seconds(1)

  /// What its connections wait for.
  package let waits: ServerWaits
  /// Interrupts what comes before the chunks.
  let opening: PostgresInterrupter
  /// Interrupts everything else.
  let closing: PostgresInterrupter

  init(_ waits: ServerWaits) {
    self.waits = waits
    opening = PostgresInterrupter(telling: waits)
    closing = PostgresInterrupter(telling: waits)
  }

  /// Ends what comes before the chunks now, and everything else in time.
  package func request() {
    opening.interrupt()
    close(after: Self.grace)
  }

  /// Leaves only a moment for the end, since no chunk is in flight any more.
  func hasStopped() { close(after: Self.farewell) }

  /// Waits, unless a request comes.
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
