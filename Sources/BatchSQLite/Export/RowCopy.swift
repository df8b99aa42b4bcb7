import BatchRuns
import BatchIdentifiers

/// A copy of the rows of a view or query, to read from instead.
///
/// Some rows cannot be found by key without reading others, for example those of an aggregate, or
/// of a table without an index on the key. Looking up each of them would take quadratic time. So
/// they are read once, in one transaction, into a temporary table of the connection. SQLite keeps
/// it in a nameless file in its folder for temporary files, with a few pages in memory. The file
/// vanishes with the process, however that ends.
struct RowCopy: Sendable {
  let entity: Entity
  private let original: Entity
  private let columns: [String]
  private let key: EntityKey
  private let parameters: [String: SQLValue]

  /// Makes a copy of some columns of the rows, which must include those of the key.
  init(
    of original: Entity,
    columns: [String],
    key: EntityKey,
    parameters: [String: SQLValue]
  ) {
    self.original = original
    self.columns = columns
    self.key = key
    self.parameters = parameters
    entity = original.read(from: Self.table)
  }

  private static let table = "temp._batch_rows"

  /// Makes the copy, unless the connection has one or has failed to make one.
  ///
  /// Must be called outside a transaction.
  ///
  /// - Returns: Whether there is a copy. There is none if a row cannot be read; each row is then
  ///   looked up, and fails on its own.
  /// - Throws: Errors that concern more than one row.
  func make(in connection: Connection) throws(BatchError) -> Bool {
    if let hasCopy = connection.hasRowCopy { return hasCopy }
    try connection.execute("PRAGMA temp_store = FILE")
    do throws(BatchError) {
      try connection.transaction(.deferred) { () throws(BatchError) in
        // Columns without a type store values unchanged.
        try connection.execute("CREATE TABLE \(Self.table) (\(SQLName.list(columns)))")
        let copying = try connection.prepare(
          """
          INSERT INTO \(Self.table) SELECT \(SQLName.list(columns)) FROM \(original.rowSource)
          """
        )
        try copying.bind(parameters)
        try copying.run()
        try connection.execute(
          "CREATE INDEX temp._batch_rows_key ON _batch_rows (\(SQLName.list(key.columns)))"
        )
      }
      connection.hasRowCopy = true
      return true
    } catch {
      guard error.isAboutRows else { throw error.code == .diskFull ? Self.isFull(error) : error }
      connection.hasRowCopy = false
      return false
    }
  }

  private static func isFull(_ error: BatchError) -> BatchError {
    BatchError(
      .diskFull,
      "the folder for temporary files is full: rows that cannot be found by key are copied there",
      remedy: "make room, or name another folder in SQLITE_TMPDIR",
      underlying: error
    )
  }
}
