import BatchPlatform

/// The environment of a run: clock, random numbers, task executor, and memory statistics.
package struct RunEnvironment: Sendable {
  package var now: @Sendable () -> ContinuousClock.Instant
  /// The time of day, in seconds since 1970.
  package var date: @Sendable () -> Double
  /// Waits for a time, or returns early if the task is cancelled.
  package var sleep: @Sendable (Duration) async -> Void
  /// Randomizes delays.
  package var generator: any RandomNumberGenerator & Sendable
  /// Runs tasks that outlive their creator; nil for the default executor.
  package var executor: (any TaskExecutor)?
  /// The peak resident memory of the process, in bytes.
  package var peakBytes: @Sendable () -> Int

  package init(
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    date: @escaping @Sendable () -> Double = { Date.now.timeIntervalSince1970 },
    sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) },
    generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    executor: (any TaskExecutor)? = nil,
    peakBytes: @escaping @Sendable () -> Int = peakResidentBytes
  ) {
    self.now = now
    self.date = date
    self.sleep = sleep
    self.generator = generator
    self.executor = executor
    self.peakBytes = peakBytes
  }
}
