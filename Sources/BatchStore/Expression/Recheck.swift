/// What happens to a row that was selected but no longer satisfies `where` when its chunk is
/// written.
public enum Recheck: String, Sendable, CaseIterable {
  /// It is left alone and counted as no longer matching; of `where` only the terms that look at the
  /// row alone are applied again.
  case row
  /// It is left alone and counted as no longer matching; all of `where` is applied again.
  case skip
  /// The chunk is rolled back and the run stops; all of `where` is applied again.
  case fail
  /// `where` is not applied again.
  case off
}
