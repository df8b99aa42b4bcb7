import BatchIdentifiers
import Synchronization

/// What the pages that a lane's last transactions wrote say about the next ones.
final class WrittenPages: Sendable {
  /// The maximum bytes that a row may write for its statement journal to stay in memory.
  private static let journaledRow = 32 << 10

  private let pageSize: Int
  private let isScattered = Atomic(false)
  /// Whether statement journals are in memory; SQLite would create and remove a file for each
  /// chunk.
  private let keepsJournals = Atomic(false)

  init(ofBytes pageSize: Int) {
    self.pageSize = pageSize
  }

  /// Whether the rows of the last chunks changed pages of their own, as those of random keys do in
  /// the index of the key; from any thread.
  var areScattered: Bool { isScattered.load(ordering: .relaxed) }

  /// Notes how many pages a transaction has written for its rows.
  func note(_ pages: Int, rows: Int, by connection: Connection) {
    // With fewer rows, the pages of the ledger would be taken for theirs.
    if rows >= 100 { isScattered.store(pages * 4 >= rows, ordering: .relaxed) }
    // Journals stay in memory unless rows are large: they are as long as the changed pages.
    let isSmall = pages * pageSize <= Self.journaledRow * rows
    guard isSmall != keepsJournals.exchange(isSmall, ordering: .relaxed) else { return }
    // If this fails, they are slower, or as long as before.
    try? connection.execute("PRAGMA temp_store = \(isSmall ? "memory" : "default")")
  }
}
