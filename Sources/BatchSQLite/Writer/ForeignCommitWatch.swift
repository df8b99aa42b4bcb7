import BatchIdentifiers
import Synchronization

/// Notices commits of other connections to a lane's database.
///
/// Only the lane checks, and it counts its checks. Code that depends on such commits remembers the
/// number of the last check it knows, and asks for commits since. The version and the last find are
/// used by the lane alone and need no protection. All three are atomic so that workers can read the
/// number of checks at any time.
package final class ForeignCommitWatch: Sendable {
  private let looks = Atomic(0)
  /// SQLite's data version at the last check.
  private let version: Atomic<Int64>
  /// The number of the check that last found a commit.
  private let lastFind = Atomic(0)

  /// Starts to watch; counts commits from now on.
  init(_ connection: Connection) throws(BatchError) {
    version = Atomic(try connection.dataVersion())
  }

  /// The number of checks so far; a worker notes it before reading, since any commit found by then
  /// is part of what it reads.
  package var lookCount: Int { looks.load(ordering: .acquiring) }

  /// Checks for commits, and returns whether another connection has committed since the given
  /// check.
  ///
  /// In a transaction that may write, the answer stays true until the transaction ends. Commits of
  /// `connection`, the lane's own, do not count:
  /// <https://www.sqlite.org/pragma.html#pragma_data_version>.
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
