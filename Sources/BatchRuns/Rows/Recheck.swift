/// What happens to a selected row that no longer satisfies `where` when its chunk is written.
public enum Recheck: String, Sendable, CaseIterable {
  /// The row is left unchanged and counts as no longer matching.
  ///
  /// Only the terms of `where` about the row itself are checked again.
  case row
  /// The row is left unchanged and counts as no longer matching; all of `where` is checked again.
  case skip
  /// The chunk is rolled back and the run stops; all of `where` is checked again.
  case fail
  /// `where` is not checked again.
  case off
}
