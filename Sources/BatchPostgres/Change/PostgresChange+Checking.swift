#if PostgreSQL
package import BatchIdentifiers

extension PostgresChange {
  /// Checks, before the first chunk, whether the change is possible at all; changes nothing.
  ///
  /// - Parameter session: The session, in no transaction.
  /// - Returns: Notes for whoever runs the change.
  /// - Throws: `BatchError` of code `readOnly` if the server or the role is read-only, `accessDenied` with what to
  ///   grant, `invalidSQL` for a table or a statement for which a run cannot keep its guarantees.
  package func check(in session: PostgresSession) throws(BatchError) -> [String] {
    let role = try session.requireWriting()
    try table.requireOwnTransaction()
    switch action {
    case .update(let assignments):
      try table.requireRights(setting: assignments.map(\.column.name))
    case .delete(let archive):
      try table.requireRights(deletes: true)
      guard let archive else { break }
      try archive.table.requireOwnTransaction()
      try archive.table.requireRight(toInsertInto: archive.columns)
    }
    let keys = try RowKeys.sample(of: key)
    let statements = try [statement(for: keys), listingStatement(for: keys)]
    try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
      () throws(BatchError) in
      for statement in statements { try session.describe(statement.sql, statement.values) }
    }
    return table.notes(for: role)
  }
}

extension PostgresSession {
  /// Refuses a read-only server and a read-only role.
  ///
  /// - Returns: The role.
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
  /// Refuses a table whose rows are outside the transaction's reach, and one whose rules rewrite statements.
  func requireOwnTransaction() throws(BatchError) {
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

  /// Notes for whoever has a role change rows.
  func notes(for role: String) -> [String] {
    var notes: [String] = []
    if hasRowSecurity {
      notes.append(
        "row security is on for \(title.quotedForMessage): rows that its policies hide from"
          + " the role \(role.quotedForMessage) are not selected, and rows that they forbid it to write fail"
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
  /// Refuses an archive into which the role may not insert.
  fileprivate func requireRight(toInsertInto columns: [String]) throws(BatchError) {
    guard !rights.usesSchema || !rights.inserts else { return }
    throw BatchError(
      .accessDenied,
      "the role may not insert into \(title.quotedForMessage)",
      remedy: "have it granted \(rights.usesSchema ? "INSERT" : "USAGE on its schema")"
    ).about(.entity(name))
  }
}
#endif
