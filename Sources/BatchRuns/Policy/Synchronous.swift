/// When a commit waits until its data is on the disk.
///
/// See <https://www.sqlite.org/pragma.html#pragma_synchronous>.
public enum Synchronous: String, Sendable, CaseIterable {
  /// Never: a power failure may damage the database.
  case off
  /// At checkpoints: a power failure may undo the last commits, ledger and data together.
  case normal
  /// At each commit.
  case full
  /// At each commit, and the folder too.
  case extra
}
