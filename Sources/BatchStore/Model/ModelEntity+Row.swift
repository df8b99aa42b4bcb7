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

  /// What finds the row of a key, with a parameter for each column of it.
  func keyCondition() throws(BatchError) -> String {
    let columns = try entity.requireKey().columns.map { "\(SQLName.quoted($0)) IS ?" }
    return (columns + [entity.condition].compactMap(\.self)).joined(separator: " AND ")
  }
}

extension ManagedObject {
  /// Gives the object a row that was just read.
  final func take(_ row: [SQLValue]) {
    self.row = row
    staleRow = nil
    readAt = .now
    isGone = false
  }
}
