import BatchIdentifiers

/// The done positions of an identifier list and their outcomes, in as few ranges as possible.
///
/// Chunks are committed nearly in order. So there is one range for most of the list and one for
/// each chunk that overtook another: at most as many as there are workers, however long the list.
public struct DoneRanges: Hashable, Sendable, Codable {
  /// Adjacent done positions.
  public struct Row: Hashable, Sendable, Codable {
    /// The first position.
    public var first: Int
    /// The position after the last.
    public var next: Int
    /// The outcomes of the identifiers at these positions.
    public var outcomes: Outcomes
    /// The number of chunks that processed these positions.
    public var chunks: Int

    /// Makes a row of the given positions.
    public init(_ positions: Range<Int>, outcomes: Outcomes, chunks: Int) {
      first = positions.lowerBound
      next = positions.upperBound
      self.outcomes = outcomes
      self.chunks = chunks
    }
  }

  /// The change that a stored copy must make after an insertion.
  package struct Change: Hashable {
    /// The row to write; it replaces the stored row with the same `first`.
    package let written: Row
    /// The `first` of a row merged into the written one.
    package let removed: Int?
  }

  /// The ranges, ascending, with gaps between them.
  public private(set) var rows: [Row] = []

  /// Makes an empty set.
  public init() {}

  /// Makes a set of the given ranges; returns nil if they overlap, are not ascending, or have
  /// counts that do not match their positions.
  public init?(_ rows: [Row]) {
    var end = 0
    for row in rows {
      guard row.first >= end, row.next > row.first, row.isConsistent else { return nil }
      end = row.next
    }
    self.rows = rows
  }

  /// The number of done positions.
  public var count: Int { rows.reduce(0) { $0 + $1.next - $1.first } }

  /// The sum of the outcomes of all ranges.
  public var outcomes: Outcomes { rows.reduce(into: Outcomes()) { $0 += $1.outcomes } }

  /// The number of chunks that processed the done positions.
  public var chunks: Int { rows.reduce(0) { $0 + $1.chunks } }

  /// Adds positions that are not done yet, in time linear in the number of ranges.
  @discardableResult
  package mutating func insert(_ row: Row) -> Change {
    var merged = row
    var removed: Int?
    let place = rows.firstIndex { $0.first >= row.first } ?? rows.count
    precondition(
      (place == 0 || rows[place - 1].next <= row.first)
        && (place == rows.count || row.next <= rows[place].first),
      "positions are done twice"
    )
    var replaced = place..<place
    if place > 0, rows[place - 1].next == row.first {
      merged.first = rows[place - 1].first
      merged.add(rows[place - 1])
      replaced = place - 1..<place
    }
    if place < rows.count, rows[place].first == row.next {
      merged.next = rows[place].next
      merged.add(rows[place])
      removed = rows[place].first
      replaced = replaced.lowerBound..<place + 1
    }
    rows.replaceSubrange(replaced, with: [merged])
    return Change(written: merged, removed: removed)
  }

  /// Replaces some failures of the row that contains `position` by the outcomes of a retry, which
  /// may be failures again.
  ///
  /// - Returns: The changed row, or nil, with nothing changed, if the row has fewer than `count`
  ///   failures.
  package mutating func replaceFailures(
    _ count: Int,
    at position: Int,
    with outcomes: Outcomes
  ) -> Row? {
    guard let index = rows.firstIndex(where: { ($0.first..<$0.next).contains(position) }) else {
      return nil
    }
    var row = rows[index]
    row.outcomes.failed -= count
    row.outcomes += outcomes
    guard row.outcomes.failed >= 0, row.isConsistent else { return nil }
    rows[index] = row
    return row
  }

  package func contains(_ position: Int) -> Bool {
    rows.contains { ($0.first..<$0.next).contains(position) }
  }

  /// Returns the positions below `total` that are not done, ascending.
  public func remaining(of total: Int) -> [Range<Int>] {
    var gaps: [Range<Int>] = []
    var end = 0
    for row in rows {
      if row.first > end { gaps.append(end..<row.first) }
      end = row.next
    }
    if end < total { gaps.append(end..<total) }
    return gaps
  }
}

extension DoneRanges.Row {
  /// Whether the counts match the positions and no sum of outcomes overflows.
  fileprivate var isConsistent: Bool {
    guard next <= IdentifierList.maximumCount else { return false }
    let counts = [
      outcomes.succeeded, outcomes.unchanged, outcomes.vanished, outcomes.noLongerMatching,
      outcomes.failed,
    ]
    let range = 0...(next - first)
    return counts.allSatisfy(range.contains) && outcomes.total == next - first
      && (1...(next - first)).contains(chunks)
  }

  fileprivate mutating func add(_ other: DoneRanges.Row) {
    outcomes += other.outcomes
    chunks += other.chunks
  }
}
