#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

/// An archive that does not exist yet; a run creates it in the transaction in which it begins.
///
/// It has the columns of the source table, with their types, collations and NOT NULL, and its
/// primary key. It has nothing that could refuse an old row: no other unique constraint, no foreign
/// key, no check, no default. Columns that the server computes become ordinary columns, which keep
/// the old values.
package struct NewArchive: Sendable {
  package let name: String
  private let definition: String

  /// Nil if the table exists; must be called inside a transaction.
  ///
  /// - Throws: `BatchError` of code `unknownEntity` if the schema does not exist, `accessDenied`
  ///   with what to grant, `invalidSQL` if rows would not reach the archive.
  package init?(
    ifMissing written: String,
    for source: PostgresTable,
    in session: PostgresSession
  ) throws(BatchError) {
    do {
      _ = try PostgresTable(named: written, in: session)
      return nil
    } catch {
      guard error.code == .unknownEntity else { throw error }
    }
    try source.requireWholeArchive(in: session)
    let parts = try WrittenName(written)
    let found = try session.execute(
      """
      SELECT n.nspname, has_schema_privilege(n.oid, 'CREATE') FROM pg_catalog.pg_namespace AS n
      WHERE n.nspname IN ($1, $2) OR $1 IS NULL AND n.nspname = current_schema()
      ORDER BY n.nspname = $1 DESC LIMIT 1
      """,
      parts.schema.map { .text($0.exact) } ?? .null,
      parts.schema.map { .text($0.folded) } ?? .null
    )
    guard found.count == 1, let schema = found.text(0, 0) else {
      throw BatchError(
        .unknownEntity,
        "there is no schema for the archive \(written.quotedForMessage)",
        remedy: "create it, or name another"
      ).about(.entity(written))
    }
    guard found.isTrue(0, 1) else {
      throw BatchError(
        .accessDenied,
        "the role may not create the archive \(written.quotedForMessage) in the schema \(schema.quotedForMessage)",
        remedy: "have it granted CREATE on the schema, or have somebody else create the archive"
      ).about(.entity(written))
    }
    name = PostgresName.qualified(schema, parts.table.exact)
    // Rows of inheriting tables may share a key.
    let key = source.hasChildren ? nil : source.indexes.first(where: \.isPrimary)
    let names = (key?.columns ?? []).compactMap(\.self)
    definition =
      "(LIKE \(source.sql)\(names.isEmpty ? "" : ", PRIMARY KEY (\(PostgresName.list(names)))"))"
  }

  /// The statement that creates it, for display.
  package var statement: String { "CREATE TABLE \(name) \(definition)" }

  /// Creates the table inside the caller's transaction, unless another run just has.
  package func create(in session: PostgresSession) throws(BatchError) {
    // IF NOT EXISTS does not protect against two runs that create it at once.
    try session.execute(
      "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
      .text("batch archive \(name)")
    )
    try session.execute("CREATE TABLE IF NOT EXISTS \(name) \(definition)")
  }
}
#endif
