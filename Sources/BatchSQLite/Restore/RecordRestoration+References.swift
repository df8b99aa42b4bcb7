import BatchRuns
import BatchIdentifiers

private struct Reference {
  let child: String
  let parent: String
  var columns: [(child: String, parent: String)]

  static func all(
    _ side: String,
    _ table: String,
    in connection: Connection
  ) throws(BatchError) -> [Reference] {
    let rows = try connection.prepare(
      """
      SELECT s.name, f.id, f."table", f."from", coalesce(f."to",
        (SELECT p.name FROM pragma_table_info(f."table", 'main') AS p WHERE p.pk = f.seq + 1))
      FROM main.sqlite_schema AS s, pragma_foreign_key_list(s.name, 'main') AS f
      WHERE s.type = 'table' AND lower(\(side)) = lower(?1)
        AND EXISTS (SELECT 1 FROM main.sqlite_schema AS p WHERE lower(p.name) = lower(f."table"))
      ORDER BY s.name, f.id, f.seq
      """
    )
    try rows.bind(.text(table), at: 1)
    var found: [(id: Int64, reference: Reference)] = []
    while try rows.step() {
      let (child, id, parent) = (rows.text(at: 0), rows.integer(at: 1), rows.text(at: 2))
      let columns = (child: rows.text(at: 3), parent: rows.text(at: 4))
      if let last = found.last, last.id == id, last.reference.child == child {
        found[found.count - 1].reference.columns.append(columns)
      } else {
        found.append((id, Reference(child: child, parent: parent, columns: [columns])))
      }
    }
    return found.map(\.reference)
  }

  private func join(_ left: String, _ right: String) -> String {
    columns.map { "\(left).\(SQLName.quoted($0.parent)) = \(right).\(SQLName.quoted($0.child))" }
      .joined(separator: " AND ")
  }

  /// Finds the row with a key if it refers to one that does not exist.
  func danglingSQL(_ table: RecordedTable) -> String {
    let key = table.key.indices.map { "c.\(SQLName.quoted(table.key[$0])) IS ?\($0 + 1)" }
    let given = columns.map { "c.\(SQLName.quoted($0.child)) IS NOT NULL" }
    return """
      SELECT 1 FROM main.\(SQLName.quoted(child)) AS c
      WHERE \((key + given).joined(separator: " AND ")) AND NOT EXISTS (
        SELECT 1 FROM main.\(SQLName.quoted(parent)) AS p WHERE \(join("p", "c")))
      """
  }

  /// Finds a row that refers to values that no row has.
  var orphanSQL: String {
    let child = columns.indices.map { "c.\(SQLName.quoted(columns[$0].child)) = ?\($0 + 1)" }
    return """
      SELECT 1 FROM main.\(SQLName.quoted(self.child)) AS c
      WHERE \(child.joined(separator: " AND ")) AND NOT EXISTS (
        SELECT 1 FROM main.\(SQLName.quoted(parent)) AS p WHERE \(join("p", "c")))
      LIMIT 1
      """
  }
}

extension RecordRestoration {
  /// The rows that, after all steps, would refer to missing rows or leave such rows behind.
  ///
  /// SQLite checks that only together with foreign-key actions, whose effects the run has recorded
  /// already.
  func unresolved(_ steps: [Step]) throws(BatchError) -> [Int: BatchError] {
    var errors: [Int: BatchError] = [:]
    for (index, table) in tables.enumerated() {
      let own = steps.filter { record.place(of: $0.row).table == index }
      if own.isEmpty { continue }
      for reference in try Reference.all("s.name", table.present.name, in: connection) {
        let sql = reference.danglingSQL(table.present)
        for step in own where step.kind != .inserted {
          let row = record.place(of: step.row).row
          guard step.kind == .deleted || table.sets(reference.columns.map(\.child), of: row) else {
            continue
          }
          let statement = try connection.prepare(sql)
          for column in table.present.key.indices {
            try statement.bind(table.recorded.keys, row, column, at: column + 1)
          }
          if try statement.step() { errors[step.row] = reference.error }
        }
      }
      for reference in try Reference.all("f.\"table\"", table.present.name, in: connection) {
        for step in own where step.kind != .deleted {
          let row = record.place(of: step.row).row
          let columns = reference.columns.map(\.parent)
          guard let place = table.places[row],
            step.kind == .inserted || table.sets(columns, of: row)
          else { continue }
          let statement = try connection.prepare(reference.orphanSQL)
          for (index, name) in columns.enumerated() {
            try table.bind(name, row, place, to: statement, at: index + 1)
          }
          if try statement.step() { errors[step.row] = reference.error }
        }
      }
    }
    return errors
  }
}

extension Reference {
  fileprivate var error: BatchError {
    BatchError(
      .constraint,
      "FOREIGN KEY constraint failed: a row of \(child.quotedForMessage) would refer to one of"
        + " \(parent.quotedForMessage) that does not exist",
      remedy: "restore that row, or let the other one refer elsewhere, and undo again"
    )
  }
}

extension RecordRestoration.Table {
  /// Whether any of the columns gets another value.
  fileprivate func sets(_ names: [String], of row: Int) -> Bool {
    names.contains { name in
      guard let index = recorded.columns.firstIndex(where: { SQLName.equal($0, name) }) else {
        return false
      }
      return recorded.before.kind(row, index) != .unset
    }
  }

  fileprivate func bind(
    _ name: String,
    _ row: Int,
    _ place: Int,
    to statement: borrowing Statement,
    at parameter: Int
  ) throws(BatchError) {
    if let key = present.key.firstIndex(where: { SQLName.equal($0, name) }) {
      try statement.bind(recorded.keys, row, key, at: parameter)
    } else if let column = present.columns.firstIndex(where: { SQLName.equal($0, name) }) {
      try statement.bind(current, place, column, at: parameter)
    } else {
      // The value of a generated column is unknown.
      try statement.check(statement.bindNull(at: parameter))
    }
  }
}
