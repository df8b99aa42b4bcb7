import BatchRuns
package import BatchIdentifiers

/// The changes that a chunk of a run by objects made to rows of several tables.
package struct ChangeRecord: StoredRecord {
  enum Kind {
    case inserted, deleted, updated
  }

  /// The changes to one table's rows: inserted ones, then deleted ones, then updated ones.
  struct Table: Sendable {
    let name: String
    let key: [String]
    let columns: [String]
    let inserted: Int
    let deleted: Int
    let keys: ValueBlock
    /// The old values; unset for rows that did not exist, and for unchanged columns.
    let before: ValueBlock
    /// The new values; unset for rows that no longer exist, and for unchanged columns.
    let after: ValueBlock

    var count: Int { keys.count }

    func kind(of row: Int) -> Kind {
      row < inserted ? .inserted : row < inserted + deleted ? .deleted : .updated
    }
  }

  var tables: [Table] = []

  init() {}

  package var count: Int { tables.reduce(0) { $0 + $1.count } }

  /// Roughly how many bytes the values hold.
  var byteCount: Int { tables.reduce(0) { $0 + $1.before.byteCount + $1.after.byteCount } }

  func place(of row: Int) -> (table: Int, row: Int) {
    var row = row
    for (index, table) in tables.enumerated() {
      if row < table.count { return (index, row) }
      row -= table.count
    }
    preconditionFailure("a row after the last")
  }

  /// A key made of the table's name and the row's key.
  package func key(of row: Int) -> PrimaryKey {
    let (table, row) = place(of: row)
    return tables[table].key(of: row)
  }

  func enter(_ run: String, in connection: Connection) throws(BatchError) {
    if tables.isEmpty { return }
    try StoredUndo.keep(packed, of: count, ofRun: run, in: connection)
  }

  // MARK: Bytes

  private static let version: UInt8 = 2

  /// The packed record, which ends with a hash.
  private var packed: [UInt8] {
    var bytes = [Self.version]
    bytes.appendVarint(UInt64(tables.count))
    for table in tables {
      bytes.append(names: [table.name])
      bytes.append(names: table.key)
      bytes.append(names: table.columns)
      for number in [table.count, table.inserted, table.deleted] {
        bytes.appendVarint(UInt64(number))
      }
      bytes.append(values: PackedValues.pack(table.keys))
      bytes.append(values: PackedValues.pack(table.before))
      bytes.append(values: PackedValues.pack(table.after, relativeTo: table.before))
    }
    return bytes.sealed
  }

  package init(_ bytes: [UInt8], _ shape: UndoShape) throws(BatchError) {
    do throws(ByteReader.Damage) {
      let content = try bytes.unsealed()
      var reader = ByteReader(content.span)
      guard try reader.byte() == Self.version else { throw .unknownVersion }
      for _ in 0..<(try reader.count(atMost: reader.remaining)) {
        guard let name = try reader.names().first else {
          throw ByteReader.Damage("a table has no name")
        }
        let (key, columns) = (try reader.names(), try reader.names())
        let count = try reader.count(atMost: RunPolicy.chunkSizeLimit)
        let inserted = try reader.count(atMost: count)
        let deleted = try reader.count(atMost: count - inserted)
        let keys = try reader.values(key.count, count)
        let before = try reader.values(columns.count, count)
        tables.append(
          Table(
            name: name,
            key: key,
            columns: columns,
            inserted: inserted,
            deleted: deleted,
            keys: keys,
            before: before,
            after: try reader.values(columns.count, count, relativeTo: before)
          )
        )
      }
      guard reader.isAtEnd else { throw .tooLong }
    } catch {
      throw .damagedRecord("\(error.reason)")
    }
  }
}

extension ChangeRecord.Table {
  /// Makes the changes of rows that were noted.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - was: Whether a row existed when it was noted.
  ///   - is: Whether it exists now.
  ///   - keys: The keys.
  ///   - before: The rows when they were noted.
  ///   - after: The current rows.
  ///   - seen: The keys noted before, since only the first note has the old row.
  init(
    _ table: RecordedTable,
    was: (Int) -> Bool,
    is: (Int) -> Bool,
    keys: ValueBlock,
    before: ValueBlock,
    after: ValueBlock,
    butOf seen: inout Set<PrimaryKey>
  ) {
    var (inserted, deleted, updated) = ([Int](), [Int](), [Int]())
    for row in 0..<keys.count where seen.insert(keys.rowKey(row)).inserted {
      switch (was(row), `is`(row)) {
      case (false, true): inserted.append(row)
      case (true, false): deleted.append(row)
      case (true, true) where !before.isSame(row, as: after, row): updated.append(row)
      default: break
      }
    }
    let nowhere = -1
    var old = before.selecting(inserted.map { _ in nowhere } + deleted + updated)
    var new = after.selecting(inserted + deleted.map { _ in nowhere } + updated)
    for row in inserted.count + deleted.count..<old.count {
      for column in 0..<old.columnCount
      where old.isSame(row, column, as: new, row) && !table.identity.contains(table.columns[column])
      {
        old.unset(row, column)
        new.unset(row, column)
      }
    }
    self.init(
      name: table.name,
      key: table.key,
      columns: table.columns,
      inserted: inserted.count,
      deleted: deleted.count,
      keys: keys.selecting(inserted + deleted + updated),
      before: old,
      after: new
    )
  }

  func key(of row: Int) -> PrimaryKey {
    var encoder = EncodedKey.Encoder()
    encoder.append(text: name)
    keys.appendKey(of: row, columns: keys.columnCount, to: &encoder)
    return .encoded(encoder.key)
  }
}

extension ValueBlock {
  func rowKey(_ row: Int) -> PrimaryKey {
    if columnCount == 1, kind(row, 0) == .integer { return .integer(word(row, 0)) }
    return key(of: row, columns: columnCount)
  }
}

extension [UInt8] {
  fileprivate mutating func append(names: [String]) {
    appendVarint(UInt64(names.count))
    for name in names {
      appendVarint(UInt64(name.utf8.count))
      self += name.utf8
    }
  }
}

extension ByteReader {
  fileprivate mutating func names() throws(Damage) -> [String] {
    var names: [String] = []
    for _ in 0..<(try count(atMost: remaining)) {
      let bytes = try take(try count(atMost: remaining))
      names.append(String(decoding: Array(copying: bytes), as: UTF8.self))
    }
    return names
  }
}
