/// Failed identifiers being retried; chunks are ranges of indexes into this list.
package struct RetriedIdentifiers: Sendable {
  /// Positions in the list of the run, ascending.
  package let positions: [Int]
  /// The indexes, split where the ledger row changes: the outcomes of a chunk go to a single row.
  package let parts: [Range<Int>]
  /// How often each identifier was tried before.
  package let attempts: [Int]

  /// Returns nil if the ledger has no row for one of the failures, which must be ascending.
  package init?(_ failed: [FailedIdentifier], of done: DoneRanges) {
    positions = failed.map(\.position)
    attempts = failed.map(\.attempt)
    var parts: [Range<Int>] = []
    var start = 0
    for row in done.rows where start < positions.count {
      let end = positions[start...].firstIndex { $0 >= row.next } ?? positions.count
      if start < end {
        guard positions[start] >= row.first else { return nil }
        parts.append(start..<end)
      }
      start = end
    }
    guard start == positions.count else { return nil }
    self.parts = parts
  }
}
