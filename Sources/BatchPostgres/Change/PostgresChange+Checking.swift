#if PostgreSQL
package import BatchIdentifiers

extension PostgresChange {
  /// Finds out, before the first chunk, whether the change can be made at all; changes nothing.
  ///
  /// - Parameter session: The session, in no transaction.
  /// - Returns: What somebody should know who has the change made.
  /// - Throws: `BatchError` of code `readOnly` where nobody may write, `accessDenied` with what to grant, `invalidSQL` for a
  ///   table or a statement for which a run cannot keep its word.
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
  /// Refuses a server on which nobody writes, and a role that does not.
  ///
  /// - Returns: The role.
  func requireWriting() throws(BatchError) -> String {
    let database = try PostgresDatabase(of: self)
    if database.isInRecovery {
      throw BatchError(
        .readOnly,
        "the server is a standby, on which nobody writes",
        at: address.description,
        remedy: "name the primary server, or add target_session_attrs=read-write to the URL"
      )
    }
    if database.isReadOnlyByDefault {
      throw BatchError(
        .readOnly,
        "the role \(database.role.quotedForMessage) only reads: default_transaction_read_only is on",
        at: address.description,
        remedy: "name a role that may write"
      )
    }
    return database.role
  }
}

extension PostgresTable {
  /// Refuses what a transaction does not reach, or something else stands between.
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
        "the rule \(rules[0].quotedForMessage) rewrites statements, so that nobody knows what became of a row",
        "have a trigger do what it does"
      )
    }
  }

  private func refusal(_ reason: String, _ remedy: Remedy) -> BatchError {
    BatchError(.invalidSQL, "\(title.quotedForMessage): \(reason)", advice: remedy)
      .about(.entity(name))
  }

  /// What somebody should know who has a role change rows.
  func notes(for role: String) -> [String] {
    var notes: [String] = []
    if hasRowSecurity {
      notes.append(
        "row security is on for \(title.quotedForMessage): rows that its policies hide from"
          + " the role \(role.quotedForMessage) are not selected, and those that they let nobody write fail"
      )
    }
    if hasChildren {
      notes.append(
        "tables inherit from \(title.quotedForMessage), and nothing keeps a key unique over all of them:"
          + " plan and run refuse rows that share one"
      )
    }
    return notes
  }
}

extension PostgresTable {
  /// Refuses an archive into which the role may put nothing.
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
