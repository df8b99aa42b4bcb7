/// Failed identifiers that are tried again, in chunks of places in this list.
package struct RetriedIdentifiers: Sendable {
  /// Their positions in the list of the run, ascending.
  package let positions: [Int]
  /// The places, cut where the positions of two neighbours are in different rows of the ledger: the
  /// outcomes of a chunk belong to one row.
  package let parts: [Range<Int>]
  /// How often each had been tried before.
  package let attempts: [Int]

  /// The given ones, which ascend, or nil if one of them is in none of the rows.
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
