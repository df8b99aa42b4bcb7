import BatchIdentifiers

/// The time that chunks in flight have after a run was told to stop; when it is over, their statements
/// are interrupted, again and again until the run has ended: one may just not have been running.
///
/// It has a task of its own, since the run itself may wait for the lane.
package final class StopGrace: Sendable {
  /// How often statements are interrupted.
  private static let interval = Duration.milliseconds(10)

  /// How long chunks have after a request.
  private let duration: Duration
  private let deadline = Lock<ContinuousClock.Instant?>(nil)

  package init(_ duration: Duration) {
    self.duration = duration
  }

  /// Begins, unless it has begun and ends earlier.
  ///
  /// - Parameter least: How long it lasts if that is longer than after a request.
  package func begin(atLeast least: Duration = .zero) {
    let end = ContinuousClock.now + max(duration, least)
    deadline.withLock { $0 = min($0 ?? end, end) }
  }

  /// Whether statements are interrupted.
  package var isOver: Bool { deadline.withLock { $0.map { $0 <= ContinuousClock.now } ?? false } }

  /// Interrupts the statements of a run when the time is over, until the task is cancelled; looks for a
  /// request to stop in the meantime.
  package func watch(
    _ writer: (any ChunkWriter)?,
    _ workers: [some ChunkWorker],
    _ spans: (any SpanSource)? = nil,
    obeying requests: any RunRequests
  ) -> Task<Void, Never> {
    Task {
      var control = requests
      while !Task.isCancelled {
        if isOver {
          writer?.interrupt()
          for worker in workers { worker.interrupt() }
          spans?.interrupt()
        } else if control.look()?.isCancelled == true {
          begin()
        }
        try? await Task.sleep(for: isOver ? Self.interval : RunThrottle.lookInterval)
      }
    }
  }
}
