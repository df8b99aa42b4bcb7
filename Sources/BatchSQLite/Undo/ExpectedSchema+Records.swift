package import BatchIdentifiers

extension ExpectedSchema {
  /// The current schema of all tables whose rows a run by objects may change.
  package init(ofRecordedTablesIn connection: Connection) throws(BatchError) {
    var uses: [(table: String, key: [String]?, columns: [String]?)] = []
    for name in try RecordedTable.names(in: connection) {
      guard let table = try RecordedTable(name, in: connection) else { continue }
      uses.append((name, table.key, nil))
    }
    try self.init(of: uses, in: connection)
  }

  func limited(to record: ChangeRecord) -> ExpectedSchema {
    limited(
      to: Dictionary(record.tables.map { ($0.name, $0.key + $0.columns) }) { $1 }
    )
  }
}

extension StoredUndo {
  /// What the records of an update or a deletion require of their entity's table; nil for records
  /// of several tables.
  package func expectedSchema(of table: String) -> ExpectedSchema? {
    guard shape.kind != .objects else { return nil }
    return schema.flatMap { ExpectedSchema(recorded: $0) }?
      .limited(to: [table: shape.key + shape.columns])
  }
}
