import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ModelEntity {
  func row(
    of identifier: PersistentIdentifier,
    in connection: Connection
  ) throws(BatchError) -> [SQLValue]? {
    guard let key = identifier.key else { throw .notFound(identifier) }
    let statement = try connection.prepare(
      """
      SELECT \(SQLName.list(columns)) FROM \(SQLName.quoted(entity.table)) \
      WHERE \(try keyCondition())
      """
    )
    try statement.bind(key)
    guard try statement.step() else { return nil }
    return columns.indices.map { statement.value(at: $0) }
  }

  /// Reads the rows of some identifiers, and skips missing ones.
  func forEachRow(
    of identifiers: [PersistentIdentifier],
    in connection: Connection,
    _ body: (PersistentIdentifier, [SQLValue]) throws(BatchError) -> Void
  ) throws(BatchError) {
    let statement = try connection.prepare(
      """
      SELECT \(SQLName.list(columns)) FROM \(SQLName.quoted(entity.table)) \
      WHERE \(try keyCondition())
      """
    )
    for identifier in identifiers {
      guard let key = identifier.key, entity.admits(key) else { continue }
      try statement.bind(key)
      if try statement.step() {
        try body(identifier, columns.indices.map { statement.value(at: $0) })
      }
      statement.reset()
    }
  }

  /// The condition that finds a row by its key, with a parameter per key column, from `?1` on.
  ///
  /// A row has only one identifier, with the key as stored. SQLite itself accepts more: `5` for
  /// `'5'` in a TEXT column, `ada` for `Ada` under some collations.
  func keyCondition() throws(BatchError) -> String {
    let key = try entity.requireKey()
    let columns = key.columns.enumerated().map { index, column in
      let (name, parameter) = (SQLName.quoted(column), "?\(index + 1)")
      if key.isRowID { return "\(name) IS \(parameter)" }
      let collation = key.collations[column].map { " COLLATE \(SQLName.quoted($0))" } ?? ""
      // The first comparison finds the row by an index, the others check it.
      return """
        \(name)\(collation) IS \(parameter) AND +\(name) COLLATE BINARY IS \(parameter) \
        AND typeof(\(name)) IS typeof(\(parameter))
        """
    }
    return (columns + [entity.condition].compactMap(\.self)).joined(separator: " AND ")
  }

  /// The identifier of the row that a column with this value refers to.
  ///
  /// A reference may be written differently from the key of the row. SQLite compares them as in
  /// foreign keys, by the affinity and collation of the key; then the key is read from the row. A
  /// value that refers to no row stays unchanged.
  func identifier(
    referredToBy value: SQLValue,
    in connection: Connection
  ) throws(BatchError) -> PersistentIdentifier {
    let key = try entity.requireKey()
    let isAsStored =
      switch value {
      case .integer: key.prefersIntegers || key.isRowID
      case .text, .invalidText: key.keepsText
      case .blob: true
      case .real, .null: false
      }
    if !isAsStored {
      let name = SQLName.quoted(key.columns[0])
      let statement = try connection.prepare(
        "SELECT \(name) FROM \(SQLName.quoted(entity.table)) WHERE \(name) IS ?"
      )
      try statement.bind(value, at: 1)
      if try statement.step() {
        var encoder = EncodedKey.Encoder()
        statement.appendKeyComponent(at: 0, to: &encoder)
        return space.identifier(.encoded(encoder.key))
      }
    }
    return space.identifier(.encoded(EncodedKey([KeyComponent(value)])))
  }
}

extension ManagedObject {
  final func take(_ row: [SQLValue], readAt: ContinuousClock.Instant = .now) {
    stored = .read(row, at: readAt)
  }
}
