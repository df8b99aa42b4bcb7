import BatchIdentifiers
import Synchronization

/// Notices commits of other connections to a lane's database.
///
/// The lane looks, now and then; everything that waits for such a commit remembers the number of
/// the look it knows, and asks for commits since. Only the lane looks, so its version and its last
/// find need no protection; that they are atomic lets workers read the number of looks beside it.
package final class ForeignCommitWatch: Sendable {
  private let looks = Atomic(0)
  /// SQLite's version of the database at the last look.
  private let version: Atomic<Int64>
  /// The look that last found a commit.
  private let lastFind = Atomic(0)

  /// Starts to watch: commits from now on count.
  init(_ connection: Connection) throws(BatchError) {
    version = Atomic(try connection.dataVersion())
  }

  /// How often the lane has looked: a worker notes it before reading, since a commit seen by then
  /// is part of what it reads.
  package var lookCount: Int { looks.load(ordering: .acquiring) }

  /// Looks, and returns whether another connection has committed since so many looks.
  ///
  /// In a transaction that may write, the answer is true until it ends. Commits of `connection`, the
  /// lane's own, do not count: <https://www.sqlite.org/pragma.html#pragma_data_version>.
  func hasSeenCommit(since lookCount: Int, in connection: Connection) throws(BatchError) -> Bool {
    let found = try connection.dataVersion()
    let thisLook = looks.load(ordering: .relaxed) + 1
    if found != version.exchange(found, ordering: .relaxed) {
      lastFind.store(thisLook, ordering: .relaxed)
    }
    looks.store(thisLook, ordering: .releasing)
    return lastFind.load(ordering: .relaxed) > lookCount
  }
}
