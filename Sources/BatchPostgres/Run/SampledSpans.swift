#if PostgreSQL
package import BatchIdentifiers

/// Parts of a list, evenly spread over it, that stand for all of it.
package struct ListSample: Sendable {
  /// Enough for the ends, and for what lies between.
  private static let partCount = 10

  package let list: PackedIdentifiers
  /// The positions of the parts in ``list``.
  package let parts: [Range<Int>]

  /// Takes a number of identifiers, nil for all, in parts of a chunk's size if there is room.
  package init(
    of all: PackedIdentifiers,
    rows: Int?,
    inChunksOf size: Int
  ) throws(BatchError) {
    guard let rows, rows < all.count else {
      (list, parts) = (all, all.count > 0 ? [0..<all.count] : [])
      return
    }
    let count = min(Self.partCount, rows >= 2 * size ? rows / size : rows)
    var builder: IdentifierListBuilder? = IdentifierListBuilder(
      storeIdentifier: all.header.storeIdentifier,
      entityName: all.header.entityName,
      keyKind: all.header.keyKind
    )
    var parts: [Range<Int>] = []
    for part in 0..<count {
      let positions = rows * part / count..<rows * (part + 1) / count
      let gap = count > 1 ? (all.count - rows) * part / (count - 1) : 0
      let taken = positions.lowerBound + gap..<positions.upperBound + gap
      try SpanList.append(all, taken, to: &builder)
      parts.append(positions)
    }
    self.parts = parts
    list = builder.take()?.finishPacked() ?? all
  }
}

/// The parts of a sample as the spans of a process that is alone.
package struct SampledSpans: ChunkSpans {
  /// Chunks that are rolled back one after another neither wait for one another nor hold up others
  /// longer, and can be timed.
  package var inOrder: Bool { true }
  private let spans: [(positions: Range<Int>, span: LeasedSpans.Span)]

  /// Looks up where the rows of each part lie, as for a span.
  package init(
    of sample: ListSample,
    key: PostgresKey,
    in table: PostgresTable,
    _ session: PostgresSession
  ) throws(BatchError) {
    let list = sample.list
    let lease = SpanLease(positions: 0..<list.count, token: 0)
    spans = try sample.parts.map { part throws(BatchError) in
      let places = try RowPlaces(of: list, part, key: key, in: table, session)
      return (part, LeasedSpans.Span(lease, list, places))
    }
  }

  package func span(of positions: Range<Int>) throws(BatchError) -> LeasedSpans.Span {
    guard let found = spans.first(where: { $0.positions.contains(positions.lowerBound) }) else {
      preconditionFailure("a chunk outside the sample")
    }
    return found.span
  }
}
#endif
