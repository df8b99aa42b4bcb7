extension Job {
  /// How a run gives the space of its old rows back after the last one.
  public enum Afterwards: String, Sendable, CaseIterable {
    /// Rebuilds the file of an SQLite database: `VACUUM`.
    case vacuum
    /// Cuts free pages off the file, some at a time: `PRAGMA incremental_vacuum`.
    case incremental
  }
}
