import BatchRuns
package import BatchIdentifiers

extension BulkChange {
  /// The tables and columns that the change writes: directly, by triggers, and by foreign-key
  /// actions.
  ///
  /// This is an upper bound if it depends on the rows.
  package func writes(
    enforcesForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) -> WrittenColumns {
    var written = ownWrites
    written.formUnion(try effects(enforcesForeignKeys: enforcesForeignKeys, in: connection))
    return written
  }

  private var ownWrites: WrittenColumns {
    var written = WrittenColumns()
    switch action {
    case .update, .assign: written.insert(writtenColumns, of: entity.table)
    case .delete(let archive):
      written.insertRows(of: entity.table)
      if let archive { written.insertRows(of: archive.entity.table) }
    }
    return written
  }

  /// The tables and columns that triggers and foreign-key actions write in response to the change,
  /// possibly in the same table; this is an upper bound if it depends on the rows.
  package func effects(
    enforcesForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) -> WrittenColumns {
    var effects = WrittenColumns()
    for sql in statements {
      effects.formUnion(try connection.accesses(of: sql).writtenByTriggers)
    }
    guard enforcesForeignKeys else { return effects }
    // An action's writes may cause others, until nothing new is reached.
    var before = WrittenColumns()
    var written = ownWrites
    written.formUnion(effects)
    while written != before {
      before = written
      for table in before.tables {
        effects.formUnion(try Self.actions(of: table, written: before, in: connection))
      }
      written.formUnion(effects)
    }
    return effects
  }

  /// The columns that foreign-key actions write if a table is written.
  private static func actions(
    of table: String,
    written: WrittenColumns,
    in connection: Connection
  ) throws(BatchError) -> WrittenColumns {
    let references = try connection.prepare(
      """
      SELECT child.name, f."from", coalesce(f."to", ''), f.on_update, f.on_delete
      FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS f
      WHERE child.type = 'table' AND lower(f."table") = lower(?)
      """
    )
    try references.bind(.text(table), at: 1)
    var reached = WrittenColumns()
    var statements: Set<String> = []
    while try references.step() {
      let (child, column) = (references.text(at: 0), references.text(at: 1))
      let refersTo = references.text(at: 2)
      let actions = ["CASCADE", "SET NULL", "SET DEFAULT"]
      // A foreign key that names no column refers to the primary key, which a trigger might set.
      let isUpdated = refersTo.isEmpty || !written.written(of: [refersTo], in: table).isEmpty
      let name = SQLName.quoted(child)
      if written.containsRows(of: table), references.text(at: 4) == "CASCADE" {
        reached.insertRows(of: child)
        statements.insert("DELETE FROM \(name)")
      } else if written.containsRows(of: table) && actions.contains(references.text(at: 4))
        || isUpdated && actions.contains(references.text(at: 3))
      {
        reached.insert([column], of: child)
        let column = SQLName.quoted(column)
        statements.insert("UPDATE \(name) SET \(column) = \(column)")
      }
    }
    for sql in statements.sorted() {
      reached.formUnion(try connection.accesses(of: sql).writtenByTriggers)
    }
    return reached
  }
}
