import BatchEngine
import BatchIdentifiers

/// A copy of the rows that a view or a query shows, to be read from in their place.
///
/// Some rows are not found by their keys without looking at others: those of an aggregate, or of a
/// table without an index on the key. To look up each of them would take the square of their number.
/// So they are read once, in one transaction, into a table of the connection's own. SQLite keeps it in
/// a file without a name in its folder for temporary files, of which a few pages are in memory, and
/// which goes with the process, however that ends.
struct RowCopy: Sendable {
  /// The entity, its rows read from the copy.
  let entity: Entity
  private let original: Entity
  private let columns: [String]
  private let key: EntityKey
  private let parameters: [String: SQLValue]

  /// A copy of some columns of the rows, those of the key included.
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

  /// Makes the copy, unless the connection has one or could not make one; to be called outside of a
  /// transaction.
  ///
  /// - Returns: Whether there is one. There is none if a row cannot be read: then each is looked up, and
  ///   fails for itself.
  /// - Throws: What is about more than a row.
  func make(in connection: Connection) throws(BatchError) -> Bool {
    if let hasCopy = connection.hasRowCopy { return hasCopy }
    try connection.execute("PRAGMA temp_store = FILE")
    do throws(BatchError) {
      try connection.transaction(.deferred) { () throws(BatchError) in
        // Columns without a type: values stay as they are.
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
      "the folder for temporary files is full: rows that are not found by their keys are copied there",
      remedy: "make room, or name another folder in SQLITE_TMPDIR",
      underlying: error
    )
  }
}
