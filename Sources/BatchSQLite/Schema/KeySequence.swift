import BatchRuns
public import BatchIdentifiers

/// The integer keys given out for one table, none of them twice.
///
/// A new key is greater than all keys in the table, than all that were given out, which the table
/// `_batch_sequence` remembers after their rows are deleted, and than all that AUTOINCREMENT gave
/// out. Use it inside a transaction that holds the write lock.
package struct KeySequence {
  let table: String
  let column: String

  init(table: String, column: String) {
    self.table = table
    self.column = column
  }

  package init(of entity: Entity) throws(BatchError) {
    table = entity.table
    column = try entity.requireKey().columns.first ?? "rowid"
  }

  /// Takes the next keys, which are also greater than `others`, about to be used.
  package func take(
    _ count: Int,
    after others: [Int64],
    in connection: Connection
  ) throws(BatchError) -> Range<Int64> {
    let last = max(try last(in: connection), others.max() ?? 0)
    let (end, isTooGreat) = last.addingReportingOverflow(Int64(count))
    guard !isTooGreat, end < Int64.max else {
      throw BatchError(
        .keysExhausted,
        "there is no integer key after \(last)",
        at: table,
        remedy: "delete the row with that key and its entry in _batch_sequence, or set the key"
      )
    }
    try remember(end, in: connection)
    return last + 1..<end + 1
  }

  /// Remembers the greatest key before rows are deleted, since its row may be among them.
  package func remember(in connection: Connection) throws(BatchError) {
    try remember(last(in: connection), in: connection)
  }

  private func last(in connection: Connection) throws(BatchError) -> Int64 {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_sequence (
        name TEXT PRIMARY KEY, last INTEGER NOT NULL
      ) WITHOUT ROWID
      """
    )
    let hasAutoincrement = try connection.value(
      "SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'"
    )
    var greatest = [
      try connection.value("SELECT last FROM _batch_sequence WHERE name = ?", .text(table)),
      try connection.value(
        "SELECT max(\(SQLName.quoted(column))) FROM \(SQLName.quoted(table))"
      ),
    ]
    if hasAutoincrement != nil {
      greatest.append(
        try connection.value("SELECT seq FROM sqlite_sequence WHERE name = ?", .text(table))
      )
    }
    return greatest.reduce(0) { result, value in
      if case .integer(let key) = value { max(result, key) } else { result }
    }
  }

  private func remember(_ last: Int64, in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      INSERT INTO _batch_sequence (name, last) VALUES (?1, ?2)
      ON CONFLICT (name) DO UPDATE SET last = ?2 WHERE last < ?2
      """,
      .text(table),
      .integer(last)
    )
  }
}

extension BatchError.Code {
  /// A table has no unused integer keys left.
  public static let keysExhausted = Self(rawValue: "keysExhausted")
}
