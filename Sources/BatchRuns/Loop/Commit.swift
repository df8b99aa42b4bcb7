/// The result of committing a chunk.
package struct Commit: Sendable {
  package let outcomes: Outcomes
  /// The identifiers neither changed nor failed; empty if the store or the output records them.
  package let passedOver: PassedOver
  /// How long the chunk blocked other writers; for an export, how long its preparation took.
  package let duration: Duration
  /// The length of the write-ahead log after the commit, in bytes.
  package let logBytes: Int
  /// A hash of all records up to the end of the chunk; nil for any other work.
  package var readHash: UInt64?

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
