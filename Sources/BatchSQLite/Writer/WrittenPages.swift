import BatchIdentifiers
import Synchronization

/// Predicts from the pages that a lane's last transactions wrote how to write the next ones.
final class WrittenPages: Sendable {
  /// The largest number of bytes written per row for which statement journals stay in memory.
  private static let journaledRow = 32 << 10

  private let pageSize: Int
  private let isScattered = Atomic(false)
  /// Whether statement journals are in memory; otherwise, SQLite creates and removes a file for
  /// each chunk.
  private let keepsJournals = Atomic(false)

  init(ofBytes pageSize: Int) {
    self.pageSize = pageSize
  }

  /// Whether each row of the last chunks changed a page of its own, as rows of random keys do in
  /// the key's index; can be read from any thread.
  var areScattered: Bool { isScattered.load(ordering: .relaxed) }

  /// Records how many pages a transaction has written for its rows.
  func note(_ pages: Int, rows: Int, by connection: Connection) {
    // With fewer rows, pages of the ledger would dominate the count.
    if rows >= 100 { isScattered.store(pages * 4 >= rows, ordering: .relaxed) }
    // Journals are as long as the changed pages, so they stay in memory unless rows are large.
    let isSmall = pages * pageSize <= Self.journaledRow * rows
    guard isSmall != keepsJournals.exchange(isSmall, ordering: .relaxed) else { return }
    // A failure costs only speed or memory.
    try? connection.execute("PRAGMA temp_store = \(isSmall ? "memory" : "default")")
  }
}
