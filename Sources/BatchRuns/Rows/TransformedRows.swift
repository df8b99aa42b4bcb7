package import BatchIdentifiers

/// The rows of a chunk with their computed changes, ready to be written.
package struct TransformedRows<Keys: ChunkKeyList>: Sendable {
  /// Computes the changes of rows, as many of the first ones as may be held.
  package typealias Computation = (ReadRows<Keys>) throws(BatchError) -> RowChanges

  package let rows: ReadRows<Keys>
  package let changes: RowChanges
  /// The rows that get values, ascending.
  package let changed: [Int]
  /// The passed-over identifiers, by number.
  package let passedOver: PassedOver

  package init(_ rows: ReadRows<Keys>, _ changes: RowChanges) {
    self.rows = rows
    self.changes = changes
    let lost = RangeSet(ascending: changes.failures.map(\.row))
      .union(RangeSet(ascending: changes.postponed.map(\.row)))
    var changed: [Int] = []
    changed.reserveCapacity(rows.count)
    for row in 0..<rows.count where changes.values.isSet(row) && !lost.contains(row) {
      changed.append(row)
    }
    self.changed = changed
    var passedOver = rows.passedOver
    if changed.count < rows.count {
      var unchanged = RangeSet(0..<rows.count)
      unchanged.subtract(RangeSet(ascending: changed))
      unchanged.subtract(lost)
      for row in unchanged.ranges.joined() { passedOver.unchanged.insert(rows.numbers[row]) }
    }
    self.passedOver = passedOver
  }

  /// The number of identifiers that were reached, counted from the first.
  package var count: Int { rows.keys.count }

  package var byteCount: Int { rows.values.byteCount + changes.values.byteCount }

  /// The identifiers of rows that failed in the handler, ascending, by number in the chunk.
  package var failures: [(number: Int, error: BatchError)] {
    changes.failures.map { (rows.numbers[$0.row], $0.error) }
  }

  /// Why some of the rows cannot be done now; nil if all are done.
  package var postponement: BatchError? {
    guard let first = changes.postponed.first else { return nil }
    var error = first.error.about(rows.key(of: first.row))
    let others = changes.postponed.count - 1
    if others > 0 { error.message += " (and \(others.grouped) more)" }
    return error
  }

  /// Returns the chunk with the current rows, and keeps the results of unchanged rows.
  ///
  /// `compute` is called for rows that have changed or could not be done before. If it reaches only
  /// some of them, the result has only the first identifiers.
  package func renewed(
    _ now: ReadRows<Keys>,
    _ compute: Computation
  ) throws(BatchError) -> TransformedRows {
    if now.isSame(as: rows), changes.postponed.isEmpty { return TransformedRows(now, changes) }
    var now = now
    let postponed = Set(changes.postponed.map(\.row))
    var places = now.places(in: rows).map { $0.flatMap { postponed.contains($0) ? nil : $0 } }
    var others = places.indices.filter { places[$0] == nil }
    let computed = try others.isEmpty ? nil : compute(now.selecting(others))
    if let count = computed?.values.count, count < others.count {
      now = now.prefix(others[count])
      places.removeSubrange(others[count]...)
      others.removeSubrange(count...)
    }
    var renewed = RowChanges(ofRows: now.count, columns: changes.values.columnCount)
    let failed = Dictionary(uniqueKeysWithValues: changes.failures.map { ($0.row, $0.error) })
    for (row, place) in places.enumerated() {
      guard let place else { continue }
      try renewed.values.set(row, from: changes.values, place)
      if let error = failed[place] { renewed.failures.append((row, error)) }
    }
    if let computed {
      for (place, row) in others.enumerated() {
        try renewed.values.set(row, from: computed.values, place)
      }
      renewed.failures += computed.failures.map { (others[$0.row], $0.error) }
      renewed.postponed = computed.postponed.map { (others[$0.row], $0.error) }
      renewed.failures.sort { $0.row < $1.row }
    }
    return TransformedRows(now, renewed)
  }

  /// Adds a failure for each row that is not also among `others`, rows of the same chunk.
  package func failing(
    rowsOtherThan others: ReadRows<Keys>,
    with error: BatchError
  ) -> TransformedRows {
    let found = Set(others.numbers)
    let lost = (0..<rows.count).filter { !found.contains(rows.numbers[$0]) }
    var changes = changes
    changes.failures.removeAll { lost.contains($0.row) }
    changes.failures += lost.map { ($0, error.about(rows.key(of: $0))) }
    changes.failures.sort { $0.row < $1.row }
    changes.postponed.removeAll { lost.contains($0.row) }
    return TransformedRows(rows, changes)
  }

  /// The part of the chunk for one identifier, with its row as read.
  package func part(_ number: Int) -> TransformedRows {
    let place = rows.numbers.partitioningIndex { $0 >= number }
    let hasRow = place < rows.count && rows.numbers[place] == number
    let selected = hasRow ? [place] : []
    var part = RowChanges(values: changes.values.selecting(selected))
    if hasRow, let failure = changes.failures.first(where: { $0.row == place }) {
      part.failures = [(0, failure.error)]
    }
    return TransformedRows(rows.selecting(selected, of: number..<(number + 1)), part)
  }
}
