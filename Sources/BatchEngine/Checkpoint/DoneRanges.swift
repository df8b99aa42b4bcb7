import BatchIdentifiers

/// The positions of an identifier list that are done, with what became of them, as few ranges as
/// there can be.
///
/// Chunks are committed nearly in order, so there is one range for the bulk and one for each chunk
/// that overtook another: as many as there are workers at most, whatever the length of the list.
public struct DoneRanges: Hashable, Sendable, Codable {
  /// Neighbouring positions that are done.
  public struct Row: Hashable, Sendable, Codable {
    /// The first position.
    public var first: Int
    /// The position after the last.
    public var next: Int
    /// What became of the identifiers at these positions.
    public var outcomes: Outcomes
    /// How many chunks did it.
    public var chunks: Int

    /// A row of the given positions.
    public init(_ positions: Range<Int>, outcomes: Outcomes, chunks: Int) {
      first = positions.lowerBound
      next = positions.upperBound
      self.outcomes = outcomes
      self.chunks = chunks
    }
  }

  /// What a stored copy has to write to follow an insertion.
  package struct Change: Hashable {
    /// The row to write, over one of the same `first` if there is one.
    package let written: Row
    /// The `first` of a row that the written one has absorbed.
    package let removed: Int?
  }

  /// The ranges, ascending, with gaps between them.
  public private(set) var rows: [Row] = []

  /// No positions at all.
  public init() {}

  /// The given rows, or nil if they overlap, are not in order, or count something else than their
  /// positions.
  public init?(_ rows: [Row]) {
    var end = 0
    for row in rows {
      guard row.first >= end, row.next > row.first, row.isConsistent else { return nil }
      end = row.next
    }
    self.rows = rows
  }

  /// How many positions are done.
  public var count: Int { rows.reduce(0) { $0 + $1.next - $1.first } }

  /// What became of all of them.
  public var outcomes: Outcomes { rows.reduce(into: Outcomes()) { $0 += $1.outcomes } }

  /// How many chunks did it.
  public var chunks: Int { rows.reduce(0) { $0 + $1.chunks } }

  /// Adds positions of which none is done yet.
  ///
  /// - Complexity: O(*n*) in the number of ranges.
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

  /// Replaces failures of one row by what became of their identifiers.
  ///
  /// - Parameters:
  ///   - count: How many there are.
  ///   - position: The position of one of them.
  ///   - outcomes: What came of them, which may be failures again.
  /// - Returns: The row as it is now; nil, with nothing changed, if it does not have as many failures.
  /// - Complexity: O(*n*) in the number of ranges.
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

  /// Whether a position is done.
  package func contains(_ position: Int) -> Bool {
    rows.contains { ($0.first..<$0.next).contains(position) }
  }

  /// The positions below `total` that are not done, ascending.
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
  /// Whether each position has one outcome, and no sum of outcomes can overflow.
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
