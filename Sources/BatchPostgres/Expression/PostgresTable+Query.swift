#if PostgreSQL
import BatchIdentifiers

extension PostgresTable {
  /// The rows of a job's query, still without a key.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` with the place of the query.
  init(
    of query: PostgresExpression,
    named name: String,
    parameters: PostgresParameters,
    path: SearchPath,
    in session: PostgresSession
  ) throws(BatchError) {
    let nothing = PostgresTable(named: name, [], nil)
    let checked = try PostgresExpressionCompiler(
      session: session,
      table: nothing,
      parameters: parameters,
      path: path
    ).query(query)
    let alias = PostgresName.quoted(name)
    let options = TransactionOptions(isReadOnly: true, searchPath: path)
    let columns = try session.transaction(options) { () throws(BatchError) in
      let found = try session.describe(
        "SELECT * FROM \(checked.sql(parameters, .place)) AS \(alias)",
        parameters.values
      )
      let all = 0..<found.columnCount
      var names: Set<String> = []
      for name in all.map(found.name) where !names.insert(name).inserted {
        throw query.refusal(
          "two columns are called \(name.quotedForMessage)",
          "give one another name with AS"
        )
      }
      return try PostgresColumn.all(
        session.execute(
          PostgresColumn.sql(Self.attributes),
          .array(PostgresArray(all.map(found.name))),
          .array(PostgresArray(all.map { Int64(found.type(ofColumn: $0)) })),
          .array(PostgresArray(all.map { Int64(found.modifier(ofColumn: $0)) }))
        )
      )
    }
    let typed = columns.map { "NULL::\($0.type) AS \(PostgresName.quoted($0.name))" }
    self.init(
      named: name,
      columns,
      PostgresQueryRows(
        sql: "\(checked.sql(parameters, .setting)) AS \(alias)",
        standIn: "(SELECT \(typed.joined(separator: ", "))) AS \(alias)",
        reads: checked.reads
      )
    )
  }

  private init(named name: String, _ columns: [PostgresColumn], _ query: PostgresQueryRows?) {
    self.init(
      oid: 0,
      schema: "public",
      name: name,
      isVisible: true,
      kind: .view,
      columns: columns,
      indexes: [],
      triggers: [],
      rules: [],
      references: [],
      referrers: [],
      partitionCount: 0,
      partitionColumns: [],
      hasChildren: false,
      hasRowSecurity: false,
      enablesRowSecurity: false,
      rights: Rights(usesSchema: true, selects: true),
      estimatedCount: nil,
      query: query
    )
  }

  /// The columns of a query, with what `pg_attribute` says of a column.
  private static let attributes = """
    (SELECT name AS attname, type::oid AS atttypid, modifier::int4 AS atttypmod, false AS attnotnull,
        ''::text AS attgenerated, ''::text AS attidentity, false AS atthasdef, 0::oid AS attcollation,
        NULL::oid AS attrelid, place::int2 AS attnum
      FROM unnest($1::text[], $2::int8[], $3::int8[]) WITH ORDINALITY AS c (name, type, modifier, place)) AS c
    """
}
#endif
