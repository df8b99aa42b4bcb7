import Synchronization

extension WriterLane {
  /// Whether the rows of the last chunks changed pages of their own, as those of random keys do in
  /// the index of the key.
  package nonisolated var changesScatteredPages: Bool { hasScattered.load(ordering: .relaxed) }

  /// Notes how many pages a transaction has written for its rows.
  nonisolated func noteScatter(ofPages pages: Int, rows: Int) {
    // With fewer rows, the pages of the ledger would be taken for theirs.
    guard rows >= 100 else { return }
    hasScattered.store(pages * 4 >= rows, ordering: .relaxed)
  }
}
