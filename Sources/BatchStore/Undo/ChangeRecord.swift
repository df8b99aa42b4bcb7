import BatchEngine
package import BatchIdentifiers

/// What a chunk of a run by objects has done to rows of several tables.
package struct ChangeRecord: StoredRecord {
  /// What was done to a row.
  enum Kind {
    case inserted, deleted, updated
  }

  /// What was done to rows of one table: those that came first, then those that went, then those that have
  /// other values.
  struct Table: Sendable {
    let name: String
    /// The columns that tell the rows apart.
    let key: [String]
    /// The other columns.
    let columns: [String]
    let inserted: Int
    let deleted: Int
    let keys: ValueBlock
    /// What the rows were; of one that was not there, and of columns that did not change, no value is given.
    let before: ValueBlock
    /// What they became, in the same way.
    let after: ValueBlock

    var count: Int { keys.count }

    func kind(of row: Int) -> Kind {
      row < inserted ? .inserted : row < inserted + deleted ? .deleted : .updated
    }
  }

  var tables: [Table] = []

  init() {}

  package var count: Int { tables.reduce(0) { $0 + $1.count } }

  /// About how many bytes the values hold.
  var byteCount: Int { tables.reduce(0) { $0 + $1.before.byteCount + $1.after.byteCount } }

  /// The table that has a row, and which of its rows it is.
  func place(of row: Int) -> (table: Int, row: Int) {
    var row = row
    for (index, table) in tables.enumerated() {
      if row < table.count { return (index, row) }
      row -= table.count
    }
    preconditionFailure("a row behind the last")
  }

  /// The name of the table and the key.
  package func key(of row: Int) -> PrimaryKey {
    let (table, row) = place(of: row)
    return tables[table].key(of: row)
  }

  /// Puts the record into the store, unless it is empty.
  func enter(_ run: String, in connection: Connection) throws(BatchError) {
    if tables.isEmpty { return }
    try connection.execute(
      "INSERT INTO _batch_undo (run, rows, bytes) VALUES (?, ?, ?)",
      .text(run),
      .integer(Int64(count)),
      .blob(packed)
    )
  }

  // MARK: Bytes

  private static let version: UInt8 = 2

  /// The record in few bytes, which end with a hash of the others.
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
  /// What has become of rows that were noted.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - was: Whether a row was there when it was noted.
  ///   - is: Whether it is there now.
  ///   - keys: The keys.
  ///   - before: What the rows were when they were noted.
  ///   - after: What they are now.
  ///   - seen: The keys that were noted before: the first time alone tells what a row was.
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
      for column in 0..<old.columnCount where old.isSame(row, column, as: new, row) {
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

  /// The name of the table and the key of a row.
  func key(of row: Int) -> PrimaryKey {
    var encoder = EncodedKey.Encoder()
    encoder.append(text: name)
    keys.appendKey(of: row, columns: keys.columnCount, to: &encoder)
    return .encoded(encoder.key)
  }
}

extension ValueBlock {
  /// The key that a row of a block of keys is.
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
