/// What a session is told by the machine that it is on: the time, and how much memory it has had.
package struct RunHost {
  /// The time, which never goes back.
  package var now: () -> ContinuousClock.Instant
  /// The most memory that the process has had resident, in bytes.
  package var peakBytes: () -> Int

  package init(
    now: @escaping () -> ContinuousClock.Instant = { ContinuousClock.now },
    peakBytes: @escaping () -> Int = peakResidentBytes
  ) {
    self.now = now
    self.peakBytes = peakBytes
  }
}
