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

  var ownWrites: WrittenColumns {
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
  ///
  /// If `undone` is true, without those that undoing the change takes back by itself: columns that
  /// `ON UPDATE CASCADE` has set follow the columns that they refer to.
  package func effects(
    enforcesForeignKeys: Bool,
    butUndone undone: Bool = false,
    in connection: Connection
  ) throws(BatchError) -> WrittenColumns {
    var effects = WrittenColumns()
    var following = WrittenColumns()
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
      var followed = following
      if case .update = action { followed.formUnion(ownWrites) }
      if case .assign = action { followed.formUnion(ownWrites) }
      for table in before.tables {
        let actions = try Self.actions(
          of: table,
          written: before,
          followed: followed,
          in: connection
        )
        effects.formUnion(actions.written)
        following.formUnion(actions.following)
      }
      written.formUnion(effects)
      written.formUnion(following)
    }
    if !undone { effects.formUnion(following) }
    return effects
  }

  /// The columns that foreign-key actions write if a table is written; apart from them those that
  /// follow the columns of `followed` by `ON UPDATE CASCADE`.
  private static func actions(
    of table: String,
    written: WrittenColumns,
    followed: WrittenColumns,
    in connection: Connection
  ) throws(BatchError) -> (written: WrittenColumns, following: WrittenColumns) {
    let references = try connection.prepare(
      """
      SELECT child.name, f."from", coalesce(f."to", ''), f.on_update, f.on_delete
      FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS f
      WHERE child.type = 'table' AND lower(f."table") = lower(?)
      """
    )
    try references.bind(.text(table), at: 1)
    var reached = WrittenColumns()
    var following = WrittenColumns()
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
        if references.text(at: 3) == "CASCADE", !refersTo.isEmpty,
          !followed.written(of: [refersTo], in: table).isEmpty
        {
          following.insert([column], of: child)
        } else {
          reached.insert([column], of: child)
        }
        let column = SQLName.quoted(column)
        statements.insert("UPDATE \(name) SET \(column) = \(column)")
      }
    }
    for sql in statements.sorted() {
      reached.formUnion(try connection.accesses(of: sql).writtenByTriggers)
    }
    return (reached, following)
  }
}
