package import BatchIdentifiers

/// The undo records of a run, the last one first.
package final class UndoLog<Record: StoredRecord>: Sendable {
  /// What was recorded.
  package let undo: StoredUndo
  /// How many rows can be undone.
  package let count: Int

  /// Some rows of a record.
  private struct Part {
    let number: Int64
    /// The place of the first among all rows of the log.
    let first: Int
    /// Which rows; nil for all.
    let rows: [Int]?

    /// The row of the record that is at a place.
    func row(at place: Int, of record: Record, reversed: Bool) -> Int {
      let count = rows?.count ?? record.count
      let index = reversed ? count - 1 - (place - first) : place - first
      return rows.map { $0[index] } ?? index
    }
  }

  private let parts: [Part]
  /// Whether the rows of a record come in reverse too, so that each is as it was when its turn came.
  private let isReversed: Bool
  private let reader: Lock<Reader>

  /// A connection, and what was read last: neighbouring chunks are of the same records.
  private struct Reader {
    let connection: Connection
    var records: [(number: Int64, record: Record)] = []

    static var mostRecords: Int { 8 }
  }

  /// Opens the log of a run.
  ///
  /// - Parameters:
  ///   - undo: The run.
  ///   - store: Its store.
  ///   - isReversed: Whether the rows of a record come in reverse too.
  ///   - identifiers: The rows that are wanted; nil for all.
  /// - Throws: `BatchError` of code `damagedFile` if a record cannot be read.
  /// - Complexity: O(*n*) in the records; in the rows, and a look-up for each, if some are wanted.
  package init(
    of undo: StoredUndo,
    in store: Store,
    reversed isReversed: Bool,
    only identifiers: IdentifierList? = nil
  ) throws(BatchError) {
    self.undo = undo
    var options = store.options
    options.isReadOnly = true
    let connection = try Connection(path: store.path, options: options)
    let wanted = try identifiers?.sortedUnique()
    var parts: [Part] = []
    var count = 0
    let records = try connection.prepare(
      "SELECT number, rows\(wanted == nil ? "" : ", bytes") FROM _batch_undo WHERE run = ?"
        + " ORDER BY number DESC"
    )
    try records.bind(.text(undo.run), at: 1)
    while try records.step() {
      let number = records.integer(at: 0)
      guard let wanted else {
        parts.append(Part(number: number, first: count, rows: nil))
        count += Int(records.integer(at: 1))
        continue
      }
      guard case .blob(let bytes) = records.value(at: 2) else { throw Self.damaged }
      let record = try Record(bytes, undo.shape)
      var rows: [Int] = []
      for row in 0..<record.count where try wanted.contains(key: record.key(of: row)) {
        rows.append(row)
      }
      if rows.isEmpty { continue }
      parts.append(Part(number: number, first: count, rows: rows))
      count += rows.count
    }
    self.parts = parts
    self.isReversed = isReversed
    self.count = count
    reader = Lock(Reader(connection: connection))
  }

  private static var damaged: BatchError {
    BatchError(.damagedFile, "table _batch_undo has a record of no bytes")
  }

  /// The identifiers of the rows: those of the last record first.
  package func identifiers(
    _ store: StoreIdentity,
    ofEntity entity: String,
    _ keyKind: IdentifierList.KeyKind
  ) throws(BatchError) -> IdentifierList {
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity,
      keyKind: keyKind
    )
    for part in parts {
      try withRecord(part.number) { record in
        for place in part.first..<part.first + (part.rows?.count ?? record.count) {
          builder.append(record.key(of: part.row(at: place, of: record, reversed: isReversed)))
        }
      }
    }
    return builder.finish()
  }

  /// The places of the first rows of the records.
  var firstPlaces: [Int] { parts.map(\.first) }

  /// Has `body` look at the rows at some places.
  func forEachRow(
    at places: [Int],
    _ body: (_ index: Int, _ record: Record, _ row: Int) throws(BatchError) -> Void
  ) throws(BatchError) {
    var index = 0
    while index < places.count {
      let part = parts[partIndex(of: places[index])]
      try withRecord(part.number) { record throws(BatchError) in
        let end = part.first + (part.rows?.count ?? record.count)
        while index < places.count, (part.first..<end).contains(places[index]) {
          try body(
            index,
            record,
            part.row(at: places[index], of: record, reversed: isReversed)
          )
          index += 1
        }
      }
    }
  }

  /// Has `body` look at the rows at some places, all of a record at a time, as long as it says so.
  func forEachPart(
    of places: Range<Int>,
    _ body: (_ record: Record, _ rows: [Int]) throws(BatchError) -> Bool
  ) throws(BatchError) {
    var place = places.lowerBound
    var goesOn = true
    while goesOn, place < places.upperBound {
      let part = parts[partIndex(of: place)]
      try withRecord(part.number) { record throws(BatchError) in
        let end = min(part.first + (part.rows?.count ?? record.count), places.upperBound)
        let rows = (place..<end).map { part.row(at: $0, of: record, reversed: isReversed) }
        place = end
        goesOn = try body(record, rows)
      }
    }
  }

  /// The part that has a place.
  private func partIndex(of place: Int) -> Int {
    var (low, high) = (0, parts.count)
    while low < high {
      let middle = (low + high) / 2
      if parts[middle].first <= place { low = middle + 1 } else { high = middle }
    }
    return low - 1
  }

  private func withRecord(
    _ number: Int64,
    _ body: (Record) throws(BatchError) -> Void
  ) throws(BatchError) {
    let record = try reader.withLock { reader throws(BatchError) in
      if let known = reader.records.first(where: { $0.number == number }) { return known.record }
      let bytes = try reader.connection.value(
        "SELECT bytes FROM _batch_undo WHERE number = ?",
        .integer(number)
      )
      guard case .blob(let bytes) = bytes else { throw Self.damaged }
      let record = try Record(bytes, undo.shape)
      if reader.records.count == Reader.mostRecords { reader.records.removeFirst() }
      reader.records.append((number, record))
      return record
    }
    try body(record)
  }
}

extension UndoRecord {
  package func key(of row: Int) -> PrimaryKey {
    keys.rowKey(row)
  }
}
