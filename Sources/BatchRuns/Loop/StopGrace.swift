import BatchIdentifiers

/// The time that chunks in flight have to finish after a stop.
///
/// When it is over, their statements are interrupted repeatedly until the run has ended, since a
/// statement may not have been running at that moment. This has its own task, since the run itself
/// may be waiting for the lane.
package final class StopGrace: Sendable {
  private static let interval = Duration.milliseconds(10)

  private let duration: Duration
  private let host: RunEnvironment
  private let deadline = Lock<ContinuousClock.Instant?>(nil)

  package init(_ duration: Duration, on host: RunEnvironment = RunEnvironment()) {
    self.duration = duration
    self.host = host
  }

  /// Begins the grace period, unless it has already begun.
  package func begin() {
    let end = host.now() + duration
    deadline.withLock { $0 = $0 ?? end }
    RunStop.current?.begin()
  }

  package var isOver: Bool {
    deadline.withLock { $0.map { $0 <= host.now() } ?? false } || RunStop.isOver()
  }

  /// Waits for a stop and, after the grace period, interrupts the run's statements until the task
  /// is cancelled.
  package func watch(
    _ writer: (any ChunkWriter)?,
    _ workers: [some ChunkWorker],
    _ spans: (any SpanSource)? = nil,
    obeying requests: any RunRequests
  ) -> Task<Void, Never> {
    Task(executorPreference: host.executor) { [self] in
      var control = requests
      while !Task.isCancelled {
        if isOver {
          writer?.interrupt()
          for worker in workers { worker.interrupt() }
          spans?.interrupt()
        } else if control.look()?.isCancelled == true {
          begin()
        }
        await host.sleep(isOver ? Self.interval : RunThrottle.lookInterval)
      }
    }
  }
}
