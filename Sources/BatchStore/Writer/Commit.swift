/// What came of committing a chunk.
package struct Commit: Sendable {
  /// What became of the identifiers.
  package let outcomes: Outcomes
  /// How long the chunk kept others from writing; of an export, how long it took to prepare.
  package let duration: Duration

  package init(outcomes: Outcomes, duration: Duration) {
    self.outcomes = outcomes
    self.duration = duration
  }
}
