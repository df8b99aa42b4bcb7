/// The result of committing a chunk.
package struct Commit: Sendable {
  package let outcomes: Outcomes
  /// The identifiers neither changed nor failed; empty if the store or the output records them.
  package let passedOver: PassedOver
  /// How long the chunk blocked other writers; for an export, how long its preparation took.
  package let duration: Duration
  /// The length of the write-ahead log after the commit, in bytes.
  package let logBytes: Int

  package init(
    outcomes: Outcomes,
    passedOver: PassedOver = PassedOver(),
    duration: Duration,
    logBytes: Int = 0
  ) {
    self.outcomes = outcomes
    self.passedOver = passedOver
    self.duration = duration
    self.logBytes = logBytes
  }
}
