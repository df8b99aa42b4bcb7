import BatchRuns
package import BatchIdentifiers

/// The undo records of a run, the last one first.
package final class UndoLog<Record: StoredRecord>: Sendable {
  package let undo: StoredUndo
  package let count: Int

  private struct Part {
    let number: Int64
    /// The position of the first among all rows of the log.
    let first: Int
    let rowCount: Int
    let rows: [Int]?

    var count: Int { rows?.count ?? rowCount }

    /// The record's row at a position of the log.
    func row(at place: Int, reversed: Bool) -> Int {
      let index = reversed ? count - 1 - (place - first) : place - first
      return rows.map { $0[index] } ?? index
    }
  }

  private let parts: [Part]
  /// Whether the rows within a record are reversed too, so that each finds the state it left.
  private let isReversed: Bool
  private let reader: Lock<Reader>

  /// A connection and the last records read, since consecutive chunks often share records.
  private struct Reader {
    let connection: Connection
    var records: [(number: Int64, record: Record)] = []

    static var mostRecords: Int { 8 }
  }

  /// Opens the log of a run; `identifiers` are the selected rows, or nil for all.
  ///
  /// - Throws: `BatchError` of code `damagedFile` if a record that may have selected rows cannot be
  ///   read.
  /// - Complexity: O(*n*) in the records; with a selection, also in the rows, with a look-up for
  ///   each.
  package init(
    of undo: StoredUndo,
    in store: Store,
    reversed isReversed: Bool,
    only identifiers: IdentifierList? = nil
  ) throws(BatchError) {
    self.undo = undo
    if identifiers == nil { try undo.requireAllRecords(at: store.path) }
    var options = store.options
    options.isReadOnly = true
    let connection = try Connection(path: store.path, options: options)
    let wanted = try identifiers?.sortedUnique()
    var parts: [Part] = []
    var count = 0
    var damage: BatchError?
    let records = try connection.prepare(
      "SELECT number, rows\(wanted == nil ? "" : ", bytes") FROM _batch_undo WHERE run = ?"
        + " ORDER BY number DESC"
    )
    try records.bind(.text(undo.run), at: 1)
    while try records.step() {
      let number = records.integer(at: 0)
      guard case .integer(let stored) = records.value(at: 1),
        let rowCount = Int(exactly: stored), (0...Self.mostRows).contains(rowCount)
      else { throw Self.damaged }
      if rowCount == 0 {
        let bytes = try connection.value(Self.bytes, .integer(number))
        _ = try Self.record(bytes, rowCount, undo.shape)
        continue
      }
      guard let wanted else {
        parts.append(Part(number: number, first: count, rowCount: rowCount, rows: nil))
        count += rowCount
        continue
      }
      var rows: [Int] = []
      do throws(BatchError) {
        let record = try Self.record(records.value(at: 2), rowCount, undo.shape)
        let isWanted = try wanted.packed.contains((0..<rowCount).map(record.key))
        rows += isWanted.indices.filter { isWanted[$0] }
      } catch {
        guard error.code == .damagedFile else { throw error }
        damage = error
      }
      if rows.isEmpty { continue }
      parts.append(Part(number: number, first: count, rowCount: rowCount, rows: rows))
      count += rows.count
    }
    // If all selected rows were found elsewhere, the damage does not matter.
    if let damage, count < wanted?.count ?? 0 { throw damage }
    self.parts = parts
    self.isReversed = isReversed
    self.count = count
    reader = Lock(Reader(connection: connection))
  }

  private init(_ log: UndoLog, reversed isReversed: Bool) {
    (undo, count, parts, reader) = (log.undo, log.count, log.parts, log.reader)
    self.isReversed = isReversed
  }

  /// The log in the order of a list that was made from it.
  ///
  /// An undo continues in the order in which it began, even if the table has gained or lost indexes
  /// since, so that a position means the same row.
  package func inOrder(of list: PackedIdentifiers) throws(BatchError) -> UndoLog {
    guard let part = parts.first(where: { $0.count > 1 }) else { return self }
    let key = try list.key(at: part.first).description
    var isOther = false
    try withRecord(of: part) { record in
      let keys = [isReversed, !isReversed].map {
        record.key(of: part.row(at: part.first, reversed: $0)).description
      }
      isOther = keys[0] != key && keys[1] == key
    }
    return isOther ? UndoLog(self, reversed: !isReversed) : self
  }

  /// The maximum number of rows in a record; a chunk has fewer.
  private static var mostRows: Int { Int(UInt32.max) }

  private static var bytes: String { "SELECT bytes FROM _batch_undo WHERE number = ?" }

  private static var damaged: BatchError { .damagedRecord("no run has written it") }

  /// Unpacks a record, which must have this many rows.
  private static func record(
    _ bytes: SQLValue?,
    _ rowCount: Int,
    _ shape: UndoShape
  ) throws(BatchError) -> Record {
    guard case .blob(let bytes) = bytes else { throw damaged }
    let record = try Record(bytes, shape)
    guard record.count == rowCount else {
      throw .damagedRecord(
        "it has \(record.count.grouped) rows, and the table says \(rowCount.grouped)"
      )
    }
    return record
  }

  /// The identifiers of the rows, those of the last record first.
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
      try withRecord(of: part) { record throws(BatchError) in
        for place in part.first..<part.first + part.count {
          let key = record.key(of: part.row(at: place, reversed: isReversed))
          if keyKind == .integer, case .encoded = key {
            throw .damagedRecord("it has a key that is no rowid")
          }
          builder.append(key)
        }
      }
    }
    return builder.finish()
  }

  var firstPlaces: [Int] { parts.map(\.first) }

  func forEachRow(
    at places: [Int],
    _ body: (_ index: Int, _ record: Record, _ row: Int) throws(BatchError) -> Void
  ) throws(BatchError) {
    var index = 0
    while index < places.count {
      let part = parts[partIndex(of: places[index])]
      try withRecord(of: part) { record throws(BatchError) in
        let end = part.first + part.count
        while index < places.count, (part.first..<end).contains(places[index]) {
          try body(
            index,
            record,
            part.row(at: places[index], reversed: isReversed)
          )
          index += 1
        }
      }
    }
  }

  /// Calls `body` with the rows at some positions, one record at a time, until it returns false.
  func forEachPart(
    of places: Range<Int>,
    _ body: (_ record: Record, _ place: Int, _ rows: [Int]) throws(BatchError) -> Bool
  ) throws(BatchError) {
    var place = places.lowerBound
    var goesOn = true
    while goesOn, place < places.upperBound {
      let part = parts[partIndex(of: place)]
      try withRecord(of: part) { record throws(BatchError) in
        let end = min(part.first + part.count, places.upperBound)
        let rows = (place..<end).map { part.row(at: $0, reversed: isReversed) }
        goesOn = try body(record, place, rows)
        place = end
      }
    }
  }

  private func partIndex(of place: Int) -> Int {
    var (low, high) = (0, parts.count)
    while low < high {
      let middle = (low + high) / 2
      if parts[middle].first <= place { low = middle + 1 } else { high = middle }
    }
    return low - 1
  }

  private func withRecord(
    of part: Part,
    _ body: (Record) throws(BatchError) -> Void
  ) throws(BatchError) {
    let record = try reader.withLock { reader throws(BatchError) in
      let known = reader.records.first { $0.number == part.number }
      if let known { return known.record }
      let bytes = try reader.connection.value(Self.bytes, .integer(part.number))
      let record = try Self.record(bytes, part.rowCount, undo.shape)
      if reader.records.count == Reader.mostRecords { reader.records.removeFirst() }
      reader.records.append((part.number, record))
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
