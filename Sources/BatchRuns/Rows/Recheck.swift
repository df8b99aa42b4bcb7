/// What happens to a selected row that no longer satisfies `where` when its chunk is written.
public enum Recheck: String, Sendable, CaseIterable {
  /// It is left alone and counts as no longer matching; only the terms of `where` about the row
  /// itself are checked again.
  case row
  /// It is left alone and counts as no longer matching; all of `where` is checked again.
  case skip
  /// The chunk is rolled back and the run stops; all of `where` is checked again.
  case fail
  /// `where` is not checked again.
  case off
}
