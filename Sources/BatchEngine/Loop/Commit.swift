/// What came of committing a chunk.
package struct Commit: Sendable {
  /// What became of the identifiers.
  package let outcomes: Outcomes
  /// Those that were neither changed nor failed; empty where the store or the output keeps them.
  package let passedOver: PassedOver
  /// How long the chunk kept others from writing; of an export, how long it took to prepare.
  package let duration: Duration
  /// The length of the write-ahead log after it, in bytes.
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
