/// The machine that a run is on: its time and its chance, where its tasks run, and the process's peak memory.
package struct RunEnvironment: Sendable {
  /// The monotonic time.
  package var now: @Sendable () -> ContinuousClock.Instant
  /// Waits, or returns early if the task is cancelled.
  package var sleep: @Sendable (Duration) async -> Void
  /// Makes delays random.
  package var generator: any RandomNumberGenerator & Sendable
  /// Runs tasks that outlive the one that begins them; nil for the default.
  package var executor: (any TaskExecutor)?
  /// The peak resident memory of the process, in bytes.
  package var peakBytes: @Sendable () -> Int

  package init(
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) },
    generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    executor: (any TaskExecutor)? = nil,
    peakBytes: @escaping @Sendable () -> Int = peakResidentBytes
  ) {
    self.now = now
    self.sleep = sleep
    self.generator = generator
    self.executor = executor
    self.peakBytes = peakBytes
  }
}
