import BatchRuns
package import BatchIdentifiers

extension KeySequence {
  /// The sequences of some tables, and of those whose rows an enforced `ON DELETE CASCADE` would
  /// delete too.
  ///
  /// Excludes deletions by triggers, which cannot be predicted.
  ///
  /// - Complexity: O(*t*) in the number of tables, for each table reached.
  package static func reached(
    byDeletingFrom tables: [String],
    in connection: Connection
  ) throws(BatchError) -> [KeySequence] {
    var sequences: [KeySequence] = []
    for table in tables {
      let rows = try connection.prepare(
        """
        WITH RECURSIVE reached(name) AS (
          SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE
          UNION
          SELECT child.name FROM reached, sqlite_schema AS child,
            pragma_foreign_key_list(child.name, 'main') AS reference
          WHERE child.type = 'table' AND reference."table" = reached.name COLLATE NOCASE
            AND reference.on_delete = 'CASCADE' AND (SELECT foreign_keys FROM pragma_foreign_keys)
        )
        SELECT reached.name, key.name FROM reached, pragma_table_xinfo(reached.name, 'main') AS key
        WHERE key.pk = 1 AND key.type = 'INTEGER' COLLATE NOCASE
        """
      )
      try rows.bind(.text(table), at: 1)
      while try rows.step() {
        let sequence = KeySequence(table: rows.text(at: 0), column: rows.text(at: 1))
        if !sequences.contains(where: { SQLName.equal($0.table, sequence.table) }) {
          sequences.append(sequence)
        }
      }
    }
    return sequences
  }

  /// Remembers the greatest key of a table, and of those whose rows foreign keys delete too, before
  /// its rows are deleted, if contexts have ever given out keys in this database.
  ///
  /// Otherwise, does nothing: a job creates no table for others in a foreign database. A context
  /// that comes later begins after the keys that exist then.
  static func rememberIfUsed(
    beforeDeletingFrom table: String,
    in connection: Connection
  ) throws(BatchError) {
    let isUsed = try connection.value(
      "SELECT 1 FROM sqlite_schema WHERE name = '_batch_sequence'"
    )
    if isUsed == nil { return }
    for sequence in try reached(byDeletingFrom: [table], in: connection) {
      try sequence.remember(in: connection)
    }
  }
}
