import BatchRuns
package import BatchIdentifiers

extension ExpectedSchema {
  /// The same schema, with the archive that receives the table's rows.
  func archiving(
    _ change: BulkChange,
    in connection: Connection
  ) throws(BatchError) -> ExpectedSchema {
    guard case .delete(let copies?) = change.action else { return self }
    var expected = self
    if try connection.value("PRAGMA foreign_keys") == .integer(1) {
      expected.archive = [change.entity.table, copies.entity.table]
    }
    let isKnown = tables.contains { SQLName.equal($0.shape.name, copies.entity.table) }
    if !isKnown, let shape = try connection.shape(of: copies.entity.table) {
      let columns = Set(copies.columns.map(SQLName.folded))
      expected.tables.append(ExpectedTable(shape: shape, used: columns, isWhole: false))
    }
    return expected
  }
}

extension WriterLane {
  /// Makes each chunk verify that the schema is as the run expects, and that the archive of
  /// `change` stays as it is now.
  package func expect(
    _ schema: ExpectedSchema,
    for change: BulkChange? = nil
  ) throws(BatchError) {
    expected = if let change { try schema.archiving(change, in: connection) } else { schema }
  }
}
