/// A session's view of its machine: the time, and the process's peak memory.
package struct RunHost {
  /// The monotonic time.
  package var now: () -> ContinuousClock.Instant
  /// The peak resident memory of the process, in bytes.
  package var peakBytes: () -> Int

  package init(
    now: @escaping () -> ContinuousClock.Instant = { ContinuousClock.now },
    peakBytes: @escaping () -> Int = peakResidentBytes
  ) {
    self.now = now
    self.peakBytes = peakBytes
  }
}
