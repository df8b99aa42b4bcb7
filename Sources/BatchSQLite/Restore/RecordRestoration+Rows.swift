import BatchRuns
import BatchIdentifiers

extension RecordRestoration.Table {
  init(_ recorded: ChangeRecord.Table, in connection: Connection) throws(BatchError) {
    guard let present = try RecordedTable(recorded.name, in: connection),
      present.key == recorded.key,
      recorded.columns.allSatisfy({ present.columns.contains($0) })
    else {
      throw BatchError(
        .noUndo,
        "table \(recorded.name.quotedForMessage) has changed since the run: it has no longer the key"
          + " \(recorded.key.joined(separator: ", ")) and the columns"
          + " \(recorded.columns.joined(separator: ", "))",
        at: connection.path,
        remedy: "restore the table's columns, then undo"
      )
    }
    self.recorded = recorded
    self.present = present
    columns = recorded.columns.map { present.columns.firstIndex(of: $0) ?? 0 }
    current = ValueBlock(columns: present.columns.count, capacity: recorded.count)
  }

  mutating func read(_ row: Int, in connection: Connection) throws(BatchError) {
    // A table may have only key columns.
    let names = present.columns.isEmpty ? ["NULL"] : present.columns.map(SQLName.quoted)
    let statement = try connection.prepare(
      """
      SELECT \(RowCollector.columns(names)) FROM \(present.quoted)
      WHERE \(present.keyCondition(from: 1))
      """
    )
    for column in present.key.indices {
      try statement.bind(recorded.keys, row, column, at: column + 1)
    }
    let count = current.count
    _ = try connection.collector.collect(from: statement, into: &current)
    statement.reset()
    if current.count > count { places[row] = count }
  }

  mutating func assume(
    _ values: RecordRestoration.Row?,
    of row: Int
  ) throws(BatchError) {
    guard let values else {
      places[row] = nil
      return
    }
    var place = places[row]
    if place == nil {
      place = current.count
      places[row] = place
      current.count += 1
    }
    for (index, name) in present.columns.enumerated() {
      try current.set(place ?? 0, index, values[name] ?? .null)
    }
  }

  /// Whether the recorded columns of a row now have the given values.
  func isSame(_ place: Int, as values: ValueBlock, _ row: Int) -> Bool {
    columns.indices.allSatisfy { index in
      values.kind(row, index) == .unset
        || current.isSame(place, columns[index], as: values, row, index)
    }
  }

  /// The error of a row that is neither as the run left it nor as it was before.
  func changedSince(_ row: Int, _ place: Int) -> BatchError {
    let kind = recorded.kind(of: row)
    let expected = kind == .deleted ? recorded.before : recorded.after
    let differences = columns.indices.compactMap { index -> String? in
      guard expected.kind(row, index) != .unset,
        !current.isSame(place, columns[index], as: expected, row, index)
      else { return nil }
      let name = recorded.columns[index].quotedForMessage
      let now = current.value(place, columns[index]).forMessage
      let old = recorded.before.value(row, index).forMessage
      let new = recorded.after.value(row, index).forMessage
      return switch kind {
      case .inserted: "\(name) is \(now), the run had set \(new)"
      case .deleted: "\(name) is \(now) and was \(old)"
      case .updated: "\(name) is \(now), the run had set \(new), and before it was \(old)"
      }
    }
    let list = differences.joined(separator: "; ")
    return switch kind {
    case .inserted:
      BatchError(
        .changedSince,
        "somebody has changed the row since the run inserted it: \(list)",
        remedy: "use --overwrite to delete it anyway"
      )
    case .deleted:
      BatchError(
        .changedSince,
        "a row with the key exists again: \(list)",
        remedy: "use --overwrite to give it the values of the deleted one"
      )
    case .updated:
      BatchError(
        .changedSince,
        "somebody has changed the row since: \(list)",
        remedy: "use --overwrite to undo it anyway"
      )
    }
  }

  // MARK: Writing

  func delete(_ row: Int, in connection: Connection) throws(BatchError) {
    let statement = try connection.prepare(
      "DELETE FROM \(present.quoted) WHERE \(present.keyCondition(from: 1))"
    )
    for column in present.key.indices {
      try statement.bind(recorded.keys, row, column, at: column + 1)
    }
    try statement.run()
  }

  func update(_ row: Int, in connection: Connection) throws(BatchError) {
    let set = recorded.columns.indices.filter { recorded.before.kind(row, $0) != .unset }
    if set.isEmpty { return }
    let assignments = set.enumerated().map { place, index in
      "\(SQLName.quoted(recorded.columns[index])) = ?\(place + 1)"
    }
    let statement = try connection.prepare(
      """
      UPDATE OR ABORT \(present.quoted) SET \(assignments.joined(separator: ", "))
      WHERE \(present.keyCondition(from: set.count + 1))
      """
    )
    for (place, index) in set.enumerated() {
      try statement.bind(recorded.before, row, index, at: place + 1)
    }
    for column in present.key.indices {
      try statement.bind(recorded.keys, row, column, at: set.count + column + 1)
    }
    try statement.run()
  }

  /// Inserts a row with its old values; columns that the run did not change keep their current
  /// ones.
  func insert(_ row: Int, in connection: Connection) throws(BatchError) {
    let place = places[row]
    // Columns added since keep their values, or get their defaults.
    let set = present.columns.indices.filter { place != nil || columns.contains($0) }
    let names = (present.key + set.map { present.columns[$0] }).map(SQLName.quoted)
    let statement = try connection.prepare(
      """
      INSERT OR ABORT INTO \(present.quoted) (\(names.joined(separator: ", ")))
      VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))
      """
    )
    for column in present.key.indices {
      try statement.bind(recorded.keys, row, column, at: column + 1)
    }
    for (offset, column) in set.enumerated() {
      let parameter = present.key.count + offset + 1
      if let index = columns.firstIndex(of: column), recorded.before.kind(row, index) != .unset {
        try statement.bind(recorded.before, row, index, at: parameter)
      } else if let place {
        try statement.bind(current, place, column, at: parameter)
      } else {
        try statement.check(statement.bindNull(at: parameter))
      }
    }
    try statement.run()
  }
}

// MARK: - Before several chunks

extension RecordRestoration {
  /// A row before some chunks, going back from the last one.
  struct RowBefore {
    /// The locations of the values that these chunks have set; nil if the row did not exist.
    private(set) var values: [String: (block: ValueBlock, row: Int, column: Int)]? = [:]

    mutating func goBack(before row: Int, of record: ChangeRecord) {
      let place = record.place(of: row)
      let table = record.tables[place.table]
      if table.kind(of: place.row) == .inserted { return values = nil }
      var values = values ?? [:]
      for (column, name) in table.columns.enumerated()
      where table.before.kind(place.row, column) != .unset {
        values[name] = (table.before, place.row, column)
      }
      self.values = values
    }
  }

  /// Whether a row is now as it was before some chunks, in the columns that they have changed.
  func isSame(_ row: Int, as before: RowBefore) -> Bool {
    let place = record.place(of: row)
    let table = tables[place.table]
    guard let current = table.places[place.row] else { return before.values == nil }
    guard let values = before.values else { return false }
    return values.allSatisfy { name, old in
      table.present.columns.firstIndex(of: name).map { column in
        table.current.isSame(current, column, as: old.block, old.row, old.column)
      } ?? false
    }
  }
}
