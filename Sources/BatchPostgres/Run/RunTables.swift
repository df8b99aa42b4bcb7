#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

/// The tables through which hosts share runs, in one schema of the database.
///
/// | table | each row |
/// | --- | --- |
/// | `_batch_run` | a run: its state, and the operator's request |
/// | `_batch_host` | a process that takes part in a run, and its last heartbeat |
/// | `_batch_span` | a span of the positions of a run, and the process that works on it |
/// | `_batch_list` | the packed identifiers of a span |
/// | `_batch_ledger` | a committed chunk of an unfinished span |
/// | `_batch_tally` | how many positions of such a span one server process has entered in the ledger |
/// | `_batch_failure` | an identifier that failed alone |
/// | `_batch_passed_over` | the identifiers of a chunk that neither changed nor failed |
/// | `_batch_part` | a file of an export that hosts share |
/// | `_batch_undo` | a run with undo records, which are in a table of their own |
/// | `_batch_approval` | a user who has approved the plan of a run |
/// | `_batch_action` | a run: what people have done to it |
/// | `_batch_course` | a run: how much was done when, and what followed the last chunk |
/// | `_batch_exit` | how a process that took part in a run ended, and what it has done |
///
/// Neither heartbeats nor chunks write to a span. The transaction of a chunk only holds a shared
/// lock on its span until it ends; ``SpanFence`` explains why.
package struct RunTables: Sendable, Hashable {
  /// The newest version of the tables that this program supports.
  package static let version = 1

  package let schema: String

  package init(schema: String) {
    self.schema = schema
  }

  /// The tables in the first schema of a session's search path; throws if there is none.
  package init(of session: PostgresSession) throws(BatchError) {
    guard let schema = try session.text("SELECT current_schema()") else {
      throw BatchError(
        .invalidSQL,
        "there is no schema to keep a run in",
        at: session.address.description,
        remedy: "name a schema, or set the search_path of the role"
      )
    }
    self.schema = schema
  }

  var run: String { name("_batch_run") }
  var host: String { name("_batch_host") }
  var span: String { name("_batch_span") }
  var list: String { name("_batch_list") }
  var ledger: String { name("_batch_ledger") }
  var tally: String { name("_batch_tally") }
  var failure: String { name("_batch_failure") }
  var passedOver: String { name("_batch_passed_over") }
  var part: String { name("_batch_part") }
  var exit: String { name("_batch_exit") }
  var undo: String { name("_batch_undo") }
  var approval: String { name("_batch_approval") }
  var action: String { name("_batch_action") }
  var course: String { name("_batch_course") }

  private func name(_ table: String) -> String { PostgresName.qualified(schema, table) }

  /// Whether the tables that a run needs exist, which a course does not; inside the caller's transaction.
  package func exist(in session: PostgresSession) throws(BatchError) -> Bool {
    try missing(in: session).allSatisfy { $0 == "_batch_course" }
  }

  /// Whether runs can be read: tables of an earlier version lack only what is noted beside them, and the checksums of
  /// files.
  func canBeRead(in session: PostgresSession) throws(BatchError) -> Bool {
    try missing(in: session).allSatisfy {
      ["_batch_action", "_batch_course", "_batch_part"].contains($0)
    }
  }

  /// Refuses a schema in which the session's role cannot keep a run, because it may not create the
  /// tables, or because it lacks rights on tables that another role created.
  ///
  /// - Throws: `BatchError` of code `accessDenied` with what to grant.
  package func requireUse(in session: PostgresSession) throws(BatchError) {
    if try exist(in: session) { return try requireRights(in: session) }
    guard try mayCreate(in: session) else {
      throw BatchError(
        .accessDenied,
        "the role may not create the tables of runs in the schema \(schema.quotedForMessage)",
        at: session.address.description,
        remedy: "have it granted CREATE on the schema, or name one of its own"
      )
    }
  }

  private func mayCreate(in session: PostgresSession) throws(BatchError) -> Bool {
    try session.text("SELECT has_schema_privilege($1, 'CREATE')", .text(schema)) == "t"
  }

  /// Refuses tables of another role on which the session's role lacks rights that a run needs.
  private func requireRights(in session: PostgresSession) throws(BatchError) {
    let rights = ["SELECT", "INSERT", "UPDATE", "DELETE"]
    let found = try session.execute(
      """
      SELECT c.relname, r.name FROM unnest($1::text[]) WITH ORDINALITY AS r (name, place)
        CROSS JOIN pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = $2 AND c.relname = ANY ($3) AND NOT pg_catalog.has_table_privilege(c.oid, r.name)
      ORDER BY r.place, c.relname LIMIT 1
      """,
      .array(PostgresArray(rights)),
      .text(schema),
      .array(PostgresArray(Self.names))
    )
    guard found.count > 0, let table = found.text(0, 0), let right = found.text(0, 1) else {
      return
    }
    throw BatchError(
      .accessDenied,
      "the role lacks \(right) on \(table) in the schema \(schema.quotedForMessage)",
      at: session.address.description,
      remedy:
        "have it granted \(rights.joined(separator: ", ")) on the tables there whose names begin with _batch_"
    )
  }

  /// Creates the missing tables, inside the caller's transaction.
  ///
  /// - Throws: `BatchError` of code `accessDenied` with what to grant, `damagedFile` if some tables
  ///   were dropped.
  package func create(in session: PostgresSession) throws(BatchError) {
    try requireUse(in: session)
    if try missing(in: session).isEmpty { return }
    if try exist(in: session), try !mayCreate(in: session) { return }
    try lock(in: session)
    let missing = try missing(in: session)
    if missing.contains("_batch_run"), !missing.contains("_batch_span"),
      try session.execute("SELECT FROM \(span) LIMIT 1").count > 0
    {
      throw BatchError(
        .damagedFile,
        "_batch_run is gone from the schema \(schema.quotedForMessage), but _batch_span has spans of its runs",
        at: session.address.description,
        remedy:
          "bring _batch_run back, or drop all tables whose names begin with _batch_ to forget the runs"
      )
    }
    let definitions = missing.flatMap(definitions)
    try session.execute(together: definitions.map { PostgresStatement(sql: $0) })
  }

  /// Lets one host at a time create tables; IF NOT EXISTS does not protect against two that do so
  /// at once.
  private func lock(in session: PostgresSession) throws(BatchError) {
    try session.execute(
      "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
      .text("batch tables \(schema)")
    )
  }

  private static let names = [
    "_batch_run", "_batch_host", "_batch_span", "_batch_list", "_batch_ledger", "_batch_tally",
    "_batch_failure", "_batch_passed_over", "_batch_part", "_batch_exit",
    "_batch_undo", "_batch_approval", "_batch_action", "_batch_course",
  ]

  private func missing(in session: PostgresSession) throws(BatchError) -> [String] {
    let found = try session.execute(
      """
      SELECT c.relname FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = ANY ($2) AND (c.relname <> '_batch_part' OR EXISTS (
        SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'sha256'))
      """,
      .text(schema),
      .array(PostgresArray(Self.names))
    )
    let present = Set((0..<found.count).compactMap { found.text($0, 0) })
    return Self.names.filter { !present.contains($0) }
  }

  private func definitions(of table: String) -> [String] {
    switch table {
    case "_batch_run":
      [
        """
        CREATE TABLE \(run) (
          run uuid PRIMARY KEY, version int NOT NULL, job text NOT NULL, run_id text, role name NOT NULL DEFAULT session_user,
          state text NOT NULL CHECK (state IN ('running', 'finished', 'acknowledged', 'setAside')),
          fingerprint text NOT NULL, metadata bytea NOT NULL, total bigint NOT NULL,
          started_at timestamptz NOT NULL, ended_at timestamptz, control text,
          attempt int NOT NULL DEFAULT 1, failed_attempts text,
          elapsed float8 NOT NULL DEFAULT 0, counted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
          held float8 NOT NULL DEFAULT 0, peak_bytes bigint NOT NULL DEFAULT 0, resumed_at bigint NOT NULL DEFAULT 0,
          canary_ended_at timestamptz, canary_over boolean NOT NULL DEFAULT false)
        """,
        "CREATE INDEX ON \(run) (job)",
      ]
    case "_batch_host":
      [
        """
        CREATE TABLE \(host) (
          run uuid NOT NULL, host uuid NOT NULL, name text NOT NULL, process int NOT NULL,
          began_at timestamptz NOT NULL, seen_at timestamptz NOT NULL, counted_at timestamptz NOT NULL,
          done bigint NOT NULL DEFAULT 0, held float8 NOT NULL DEFAULT 0, rate float8, hold text, waiting text,
          PRIMARY KEY (run, host)) WITH (fillfactor = 50)
        """
      ]
    case "_batch_span":
      [
        // This unique key contains the token, so changing the token changes a key.
        """
        CREATE TABLE \(span) (
          run uuid NOT NULL, first bigint NOT NULL, next bigint NOT NULL, host uuid,
          token bigint NOT NULL DEFAULT 0, done boolean NOT NULL DEFAULT false,
          \(Self.outcomes.map { "\($0) bigint NOT NULL DEFAULT 0" }.joined(separator: ", ")),
          PRIMARY KEY (run, first), UNIQUE (run, first, token)) WITH (fillfactor = 50)
        """
      ]
    case "_batch_list":
      [
        """
        CREATE TABLE \(list) (
          run uuid NOT NULL, first bigint NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (run, first))
        """,
        // The bytes are already packed.
        "ALTER TABLE \(list) ALTER COLUMN bytes SET STORAGE EXTERNAL",
      ]
    case "_batch_ledger":
      [
        """
        CREATE TABLE \(ledger) (
          run uuid NOT NULL, first bigint NOT NULL, next bigint NOT NULL,
          \(Self.outcomes.map { "\($0) bigint NOT NULL" }.joined(separator: ", ")),
          PRIMARY KEY (run, first))
        """
      ]
    case "_batch_tally":
      [
        """
        CREATE TABLE \(tally) (
          run uuid NOT NULL, first bigint NOT NULL, backend int NOT NULL, entered bigint NOT NULL,
          PRIMARY KEY (run, first, backend)) WITH (fillfactor = 50)
        """
      ]
    case "_batch_failure":
      [
        """
        CREATE TABLE \(failure) (
          run uuid NOT NULL, position bigint NOT NULL, code text NOT NULL, message text NOT NULL,
          attempt int NOT NULL, failed_at timestamptz NOT NULL, PRIMARY KEY (run, position))
        """
      ]
    case "_batch_exit":
      [
        """
        CREATE TABLE \(exit) (
          run uuid NOT NULL, host uuid NOT NULL, name text NOT NULL, process int NOT NULL,
          exited_at timestamptz NOT NULL, state text NOT NULL, reason text, done bigint NOT NULL,
          PRIMARY KEY (run, host))
        """
      ]
    case "_batch_approval":
      [
        """
        CREATE TABLE \(approval) (
          run uuid NOT NULL, role name NOT NULL DEFAULT session_user, user_name text NOT NULL, host text NOT NULL,
          digest text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (run, role, user_name))
        """
      ]
    case "_batch_action":
      ["CREATE TABLE \(action) (run uuid PRIMARY KEY, actions text NOT NULL)"]
    case "_batch_course":
      ["CREATE TABLE \(course) (run uuid PRIMARY KEY, course text NOT NULL)"]
    case "_batch_undo":
      [
        """
        CREATE TABLE \(undo) (
          run uuid PRIMARY KEY, entity text NOT NULL, key text[] NOT NULL, columns text[] NOT NULL,
          is_deletion boolean NOT NULL, is_undone boolean NOT NULL DEFAULT false, kept_until timestamptz)
        """
      ]
    case "_batch_part":
      [
        """
        CREATE TABLE IF NOT EXISTS \(part) (
          run uuid NOT NULL, first bigint NOT NULL, next bigint NOT NULL, host text NOT NULL, file text NOT NULL,
          rows bigint NOT NULL, bytes bigint NOT NULL, PRIMARY KEY (run, first))
        """,
        // Tables of an earlier version lack them.
        "ALTER TABLE \(part) ADD sha256 text, ADD first_key text, ADD last_key text",
      ]
    default:
      [
        """
        CREATE TABLE \(passedOver) (
          run uuid NOT NULL, first bigint NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (run, first))
        """
      ]
    }
  }

  static let outcomes = [
    "chunks", "succeeded", "unchanged", "vanished", "no_longer_matching", "failed",
  ]
}
#endif
