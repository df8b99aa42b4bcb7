#if PostgreSQL
import BatchRuns
import BatchIdentifiers

extension RunTables {
  /// Notes what people have done to a run, inside the caller's transaction; nothing if an earlier
  /// version made the tables and no process of this one has taken part.
  func note(
    _ new: [OperatorAction],
    of run: String,
    in session: PostgresSession
  ) throws(BatchError) {
    guard !new.isEmpty,
      try session.text("SELECT pg_catalog.to_regclass($1)", .text(action)) != nil
    else { return }
    try session.execute(
      "INSERT INTO \(action) VALUES ($1::uuid, '[]') ON CONFLICT (run) DO NOTHING",
      .text(run)
    )
    var actions = try noted(of: run, locking: true, in: session)
    actions.note(new)
    try session.execute(
      "UPDATE \(action) SET actions = $2 WHERE run = $1::uuid",
      .text(run),
      .text(actions.recorded)
    )
  }

  /// What people have done to a run since it began, as far as it is noted and the role may read it.
  func noted(of run: String, in session: PostgresSession) throws(BatchError) -> [OperatorAction] {
    let mayRead = try session.text(
      "SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass($1), 'SELECT')",
      .text(action)
    )
    return mayRead == "t" ? try noted(of: run, locking: false, in: session) : []
  }

  private func noted(
    of run: String,
    locking locks: Bool,
    in session: PostgresSession
  ) throws(BatchError) -> [OperatorAction] {
    let text = try session.text(
      "SELECT actions FROM \(action) WHERE run = $1::uuid\(locks ? " FOR UPDATE" : "")",
      .text(run)
    )
    return text.map { [OperatorAction](recorded: $0) } ?? []
  }
}
#endif
