#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

extension PostgresChange {
  /// Checks, before the first chunk and outside a transaction, whether the change is possible;
  /// changes nothing.
  ///
  /// - Returns: Notes for the operator.
  /// - Throws: `BatchError` of code `readOnly` if the server or the role is read-only,
  ///   `accessDenied` with what to grant, `invalidSQL` for a table or a statement for which a run
  ///   cannot keep its guarantees.
  package func check(in session: PostgresSession) throws(BatchError) -> [String] {
    let role = try session.requireWriting()
    try table.requireOwnTransaction(in: session)
    switch action {
    case .update(let assignments):
      try table.requireRights(setting: assignments.map(\.column.name))
      try table.requirePolicy(for: .update, in: session)
    case .delete(let archive):
      try table.requireRights(deletes: true)
      try table.requirePolicy(for: .delete, in: session)
      guard let archive else { break }
      try table.requireWholeArchive(archive.table, in: session)
      try table.requireOutside(archive.table, in: session)
      try archive.table.requireOwnTransaction(in: session)
      try archive.table.requireRightToInsert()
    }
    let keys = try RowKeys.sample(of: key)
    let statements = try [statement(for: keys), listingStatement(for: keys)]
    try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
      () throws(BatchError) in
      // Unlike parsing, this checks the rights to the columns that expressions read.
      for statement in statements {
        try session.execute("EXPLAIN \(statement.sql)", statement.values)
      }
    }
    return table.notes(for: role)
  }
}

extension PostgresSession {
  /// Refuses a read-only server and a read-only role; returns the role.
  func requireWriting() throws(BatchError) -> String {
    let database = try PostgresDatabase(of: self)
    if database.isInRecovery {
      throw BatchError(
        .readOnly,
        "the server is a standby, which is read-only",
        at: address.description,
        remedy: "name the primary server, or add target_session_attrs=read-write to the URL"
      )
    }
    if database.isReadOnlyByDefault {
      throw BatchError(
        .readOnly,
        "the role \(database.role.quotedForMessage) is read-only: default_transaction_read_only is on",
        at: address.description,
        remedy: "name a role that may write"
      )
    }
    return database.role
  }
}

extension PostgresTable {
  /// Refuses an archive if deleting a row also deletes or changes other rows of the table, or rows
  /// of an existing archive, through foreign keys.
  ///
  /// Those rows would not reach the archive as they were. Triggers may do the same, but that cannot
  /// be predicted.
  package func requireWholeArchive(
    _ archive: PostgresTable? = nil,
    in session: PostgresSession
  ) throws(BatchError) {
    let keys = try session.execute(
      """
      WITH RECURSIVE deleted AS (
        SELECT $1::pg_catalog.oid AS oid
        UNION SELECT c.conrelid FROM deleted AS d JOIN pg_catalog.pg_constraint AS c
          ON c.confrelid = d.oid AND c.contype = 'f' AND c.confdeltype = 'c')
      SELECT c.conname FROM deleted AS d JOIN pg_catalog.pg_constraint AS c
        ON c.confrelid = d.oid AND c.contype = 'f' AND c.confdeltype IN ('c', 'n', 'd')
          AND c.conrelid IN ($1, $2)
      ORDER BY 1 LIMIT 1
      """,
      .literal(String(oid)),
      .literal(String(archive?.oid ?? oid))
    )
    if let column = try columnOfChildren(in: session) {
      throw refusal(
        "tables that inherit from it have columns of their own, such as \(column.quotedForMessage), which would not be"
          + " archived",
        "run a job for each of them"
      )
    }
    guard keys.count > 0, let name = keys.text(0, 0) else { return }
    throw BatchError(
      .invalidSQL,
      "deleting a row of \(title.quotedForMessage) deletes or changes others of it or of the archive, by the foreign key"
        + " \(name.quotedForMessage)",
      remedy:
        "copy the rows first and delete them without an archive, or let the foreign key do nothing on delete"
    ).about(.entity(self.name))
  }

  private func columnOfChildren(in session: PostgresSession) throws(BatchError) -> String? {
    guard hasChildren else { return nil }
    let columns = try session.execute(
      """
      WITH RECURSIVE tables AS (
        SELECT $1::pg_catalog.oid AS oid
        UNION SELECT i.inhrelid FROM tables AS t JOIN pg_catalog.pg_inherits AS i ON i.inhparent = t.oid)
      SELECT a.attname FROM tables AS t JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.oid
      WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL ($2) ORDER BY 1 LIMIT 1
      """,
      .literal(String(oid)),
      .array(PostgresArray(self.columns.map(\.name)))
    )
    return columns.count > 0 ? columns.text(0, 0) : nil
  }

  /// Refuses an archive that shares rows with this table through partitions or inheritance.
  fileprivate func requireOutside(
    _ archive: PostgresTable,
    in session: PostgresSession
  ) throws(BatchError) {
    let tables = try session.execute(
      """
      WITH RECURSIVE tables AS (
        SELECT oid AS root, oid FROM (VALUES ($1::pg_catalog.oid), ($2)) AS both_of_them (oid)
        UNION SELECT t.root, i.inhrelid FROM tables AS t JOIN pg_catalog.pg_inherits AS i ON i.inhparent = t.oid)
      SELECT FROM tables WHERE root = $1 AND oid = $2 OR root = $2 AND oid = $1
      """,
      .literal(String(oid)),
      .literal(String(archive.oid))
    )
    guard tables.count > 0 else { return }
    throw BatchError(
      .unknownEntity,
      "\(archive.title.quotedForMessage) cannot be the archive of \(title.quotedForMessage): one is a part of the"
        + " other",
      remedy: "name another table"
    ).about(.entity(archive.name))
  }

  /// What is done to a row, by the letters of `pg_policy.polcmd`.
  enum RowCommand: String {
    case insert = "a"
    case update = "w"
    case delete = "d"

    var verb: String {
      switch self {
      case .insert: "insert"
      case .update: "update"
      case .delete: "delete"
      }
    }

    /// Its bit in `pg_trigger.tgtype`.
    fileprivate var triggerBit: Int64 {
      switch self {
      case .insert: 4
      case .update: 16
      case .delete: 8
      }
    }
  }

  /// Refuses a table whose row security lets the role write no row.
  func requirePolicy(
    for command: RowCommand,
    in session: PostgresSession
  ) throws(BatchError) {
    guard hasRowSecurity else { return }
    let policies = try session.execute(
      """
      SELECT FROM pg_catalog.pg_policy WHERE polrelid = $1 AND polpermissive AND polcmd IN ('*', $2)
        AND (0 = ANY (polroles) OR EXISTS (
          SELECT FROM unnest(polroles) AS role WHERE pg_catalog.pg_has_role(role, 'USAGE')))
      """,
      .literal(String(oid)),
      .literal(command.rawValue)
    )
    guard policies.count == 0 else { return }
    throw BatchError(
      .accessDenied,
      "row security is on for \(title.quotedForMessage), and no policy lets the role \(command.verb) rows",
      remedy: "create a policy FOR \(command.verb.uppercased()) for it, or name another role"
    ).about(.entity(name))
  }

  /// The error for a row that the role may read but not write.
  var rowIsProtected: BatchError {
    BatchError(
      .accessDenied,
      "a row security policy lets the role read the row but not write it",
      advice: "change the policy, or name another role",
      underlying: PostgresError("row security", state: .insufficientPrivilege)
    )
  }
}

extension PostgresTable {
  /// The table `$1`, its partitions and the tables that inherit from it; for a view, everything
  /// that it reads.
  private static let parts = """
    WITH RECURSIVE parts AS (
      SELECT $1::pg_catalog.oid AS oid
      UNION SELECT next.oid FROM parts AS p CROSS JOIN LATERAL (
        SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = p.oid
        UNION ALL
        SELECT d.refobjid FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_depend AS d
          ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
        WHERE r.ev_class = p.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass) AS next (oid))
    """

  /// Whether triggers of the table or its parts run for a command.
  func firesTriggers(
    on command: RowCommand,
    in session: PostgresSession
  ) throws(BatchError) -> Bool {
    let found = try session.execute(
      """
      \(Self.parts)
      SELECT FROM parts AS p JOIN pg_catalog.pg_trigger AS t ON t.tgrelid = p.oid
      WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND t.tgtype & $2::pg_catalog.int4 <> 0
      LIMIT 1
      """,
      .literal(String(oid)),
      .literal(String(command.triggerBit))
    )
    return found.count > 0
  }

  /// The triggers that can keep a command from a row by returning NULL, in words; nil for none.
  func triggersKeeping(
    from command: RowCommand,
    in session: PostgresSession
  ) throws(BatchError) -> String? {
    let found = try session.execute(
      """
      \(Self.parts)
      SELECT DISTINCT t.tgname FROM parts AS p JOIN pg_catalog.pg_trigger AS t ON t.tgrelid = p.oid
      WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
        -- BEFORE or INSTEAD OF, for each row.
        AND t.tgtype & 1 <> 0 AND t.tgtype & 66 <> 0 AND t.tgtype & $2::pg_catalog.int4 <> 0
      ORDER BY 1
      """,
      .literal(String(oid)),
      .literal(String(command.triggerBit))
    )
    let names = (0..<found.count).compactMap { found.text($0, 0)?.quotedForMessage }
    if names.isEmpty { return nil }
    return (names.count == 1 ? "the trigger " : "one of the triggers ")
      + names.joined(separator: ", ")
  }

  /// The error for a row that a trigger protects by returning NULL; nil if no trigger could.
  func keepsRow(
    from command: RowCommand,
    in session: PostgresSession
  ) throws(BatchError) -> BatchError? {
    guard let triggers = try triggersKeeping(from: command, in: session) else { return nil }
    return BatchError(
      .constraint,
      "\(triggers) keeps the row in \(title.quotedForMessage) as it is: the server was asked to \(command.verb) it, and did not",
      remedy: "leave such rows out in where, or have the trigger let them pass"
    ).about(.entity(name))
  }

  /// Refuses a table whose rows are not part of the transaction, and one whose rules rewrite
  /// statements.
  func requireOwnTransaction(in session: PostgresSession) throws(BatchError) {
    switch kind {
    case .table, .partitionedTable, .view: break
    case .materializedView:
      throw refusal("a materialized view cannot be written", "name the table behind it")
    case .foreignTable:
      throw refusal(
        "the rows are on another server, which does not commit them together with the record of the run",
        "run the job there"
      )
    }
    let foreign = try session.execute(
      """
      \(Self.parts)
      SELECT c.relname FROM parts JOIN pg_catalog.pg_class AS c ON c.oid = parts.oid
      WHERE c.relkind = 'f' ORDER BY 1 LIMIT 1
      """,
      .literal(String(oid))
    )
    if foreign.count > 0, let name = foreign.text(0, 0) {
      throw refusal(
        "its part \(name.quotedForMessage) is on another server, which does not commit rows together with the record of"
          + " the run",
        "run the job there, and here on the other parts"
      )
    }
    guard rules.isEmpty else {
      throw refusal(
        "the rule \(rules[0].quotedForMessage) rewrites statements, so the outcome of a row is unknown",
        "replace it with a trigger"
      )
    }
  }

  private func refusal(_ reason: String, _ remedy: Remedy) -> BatchError {
    BatchError(.invalidSQL, "\(title.quotedForMessage): \(reason)", advice: remedy)
      .about(.entity(name))
  }

  func notes(for role: String) -> [String] {
    var notes: [String] = []
    if hasRowSecurity {
      notes.append(
        "row security is on for \(title.quotedForMessage): rows that its policies hide from"
          + " the role \(role.quotedForMessage) are not selected, and rows that it may only read fail"
      )
    }
    if hasChildren {
      notes.append(
        "tables inherit from \(title.quotedForMessage), and nothing keeps a key unique across all of them:"
          + " plan and run refuse rows that share one"
      )
    }
    return notes
  }
}

extension PostgresTable {
  func requireRightToInsert() throws(BatchError) {
    guard !rights.usesSchema || !rights.inserts else { return }
    throw BatchError(
      .accessDenied,
      "the role may not insert into \(title.quotedForMessage)",
      remedy: "have it granted \(rights.usesSchema ? "INSERT" : "USAGE on its schema")"
    ).about(.entity(name))
  }
}
#endif
