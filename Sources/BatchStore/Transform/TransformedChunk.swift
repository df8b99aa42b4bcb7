package import BatchEngine
package import BatchIdentifiers

/// A read and computed chunk, on its way to the writer lane.
package struct TransformedChunk: Sendable {
  /// The rows as read.
  let rows: ChunkRows
  /// The handler's results.
  private let changes: RowChanges
  let run: String
  /// The lane's count of looks before the rows were read.
  let lookCount: Int
  /// The keys of the rows to change, and their numbers within the chunk.
  let keys: ChunkKeys
  let numbers: [Int]
  /// The computed values, a row for each of the keys.
  let values: ValueBlock
  /// The passed-over identifiers, by number.
  let passedOver: PassedOver

  /// Makes a chunk of rows.
  init(_ rows: ChunkRows, _ changes: RowChanges, run: String, lookCount: Int) {
    self.rows = rows
    self.changes = changes
    self.run = run
    self.lookCount = lookCount
    var changed: [Int] = []
    changed.reserveCapacity(rows.count)
    for row in 0..<rows.count where changes.values.isSet(row) { changed.append(row) }
    var passedOver = rows.passedOver
    if changed.count + changes.failures.count < rows.count {
      var unchanged = RangeSet(0..<rows.count)
      unchanged.subtract(RangeSet(ascending: changed))
      unchanged.subtract(RangeSet(ascending: changes.failures.map(\.row)))
      for row in unchanged.ranges.joined() { passedOver.unchanged.insert(rows.numbers[row]) }
    }
    self.passedOver = passedOver
    let isWhole = changed.count == rows.keys.identifierCount
    keys = isWhole && rows.keys.isRange ? rows.keys : rows.keys(ofRows: changed)
    numbers = isWhole ? rows.numbers : changed.map { rows.numbers[$0] }
    values = isWhole ? changes.values : changes.values.selecting(changed)
  }

  /// The number of its identifiers: the first of those requested.
  package var count: Int { rows.keys.identifierCount }

  /// The bytes of its texts and blobs.
  package var byteCount: Int { rows.values.bytes.count + changes.values.bytes.count }

  /// The identifiers whose rows the handler failed on, ascending, by number in the chunk.
  var failures: [(number: Int, error: BatchError)] {
    changes.failures.map { (rows.numbers[$0.row], $0.error) }
  }

  /// The outcomes if it were written now: its changes count as succeeded.
  package var foreseen: (Outcomes, [BatchError]) {
    var foreseen = passedOver.counts
    foreseen.succeeded = numbers.count
    foreseen.failed = changes.failures.count
    return (foreseen, changes.failures.map { $0.error.about(rows.key(of: $0.row)) })
  }

  /// Why some of its rows cannot be done now.
  var postponement: BatchError? {
    guard let first = changes.postponed.first else { return nil }
    var error = first.error.about(rows.key(of: first.row))
    let others = changes.postponed.count - 1
    if others > 0 { error.message += " (and \(others) more)" }
    return error
  }

  /// The chunk with its current rows.
  ///
  /// - Parameters:
  ///   - now: The rows.
  ///   - lookCount: The lane's count of looks before the rows were read.
  ///   - compute: Computes the changes of rows that differ, or could not be done before: of as many
  ///     of the first ones as may be held.
  /// - Returns: The chunk, or its first identifiers, with the earlier results for unchanged rows.
  /// - Throws: Errors of `compute`.
  func renewed(
    _ now: ChunkRows,
    lookCount: Int,
    _ compute: (ChunkRows) throws(BatchError) -> RowChanges
  ) throws(BatchError) -> TransformedChunk {
    if now.isSame(as: rows), changes.postponed.isEmpty {
      return TransformedChunk(now, changes, run: run, lookCount: lookCount)
    }
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
    var renewed = RowChanges(
      values: ValueBlock(
        columns: changes.values.columnCount,
        capacity: now.count,
        count: now.count,
        filledWith: .unset
      )
    )
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
    return TransformedChunk(now, renewed, run: run, lookCount: lookCount)
  }

  /// The single identifier with this number, with its row as read.
  func part(_ number: Int) -> TransformedChunk {
    let place = rows.numbers.partitioningIndex { $0 >= number }
    let hasRow = place < rows.count && rows.numbers[place] == number
    let selected = hasRow ? [place] : []
    var part = RowChanges(values: changes.values.selecting(selected))
    if hasRow, let failure = changes.failures.first(where: { $0.row == place }) {
      part.failures = [(0, failure.error)]
    }
    return TransformedChunk(
      rows.selecting(selected, of: number..<(number + 1)),
      part,
      run: run,
      lookCount: lookCount
    )
  }
}
