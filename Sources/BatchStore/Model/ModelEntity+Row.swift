import BatchIdentifiers

extension ModelEntity {
  /// The row of an identifier, or nil if there is none.
  func row(
    of identifier: PersistentIdentifier,
    in connection: Connection
  ) throws(BatchError) -> [SQLValue]? {
    guard let key = identifier.key else { throw ModelContext.notFound(identifier) }
    let statement = try connection.prepare(
      """
      SELECT \(SQLName.list(columns)) FROM \(SQLName.quoted(entity.table)) \
      WHERE \(try keyCondition())
      """
    )
    for (index, component) in key.components.enumerated() {
      try statement.bind(SQLValue(component), at: index + 1)
    }
    guard try statement.step() else { return nil }
    return columns.indices.map { statement.value(at: $0) }
  }

  /// Reads the rows of some identifiers of the entity, passing over those without one.
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
      for (index, component) in key.components.enumerated() {
        try statement.bind(SQLValue(component), at: index + 1)
      }
      if try statement.step() {
        try body(identifier, columns.indices.map { statement.value(at: $0) })
      }
      statement.reset()
    }
  }

  /// What finds the row of a key, with a parameter for each column of it.
  func keyCondition() throws(BatchError) -> String {
    let columns = try entity.requireKey().columns.map { "\(SQLName.quoted($0)) IS ?" }
    return (columns + [entity.condition].compactMap(\.self)).joined(separator: " AND ")
  }
}

extension ManagedObject {
  /// Gives the object a row that was just read.
  final func take(_ row: [SQLValue], readAt: ContinuousClock.Instant = .now) {
    self.row = row
    staleRow = nil
    self.readAt = readAt
    isGone = false
  }
}
