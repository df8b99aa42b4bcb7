#if PostgreSQL
package import BatchIdentifiers
package import BatchJobs
package import BatchRuns

/// Inserts records of files into a table, one row each.
///
/// A statement gets the values of many records as arrays, one for each field. The server turns
/// their elements into the types of the columns as it does for any INSERT.
package struct PostgresInsertion: Sendable {
  package enum Value: Sendable {
    /// A field unchanged, by its index.
    case field(Int)
    case expression(CheckedExpression)
  }

  /// A value of each record as a statement gets it.
  struct Field: Sendable {
    /// Its name in expressions.
    let name: String
    /// Its type in expressions.
    let type: String
    let element: PostgresArray.Element
    /// Whether a statement needs it.
    var isUsed = true
  }

  package let table: PostgresTable
  /// The columns that get values, in the order of the statement.
  package let columns: [PostgresColumn]
  let values: [Value]
  let fields: [Field]
  /// The types by which the files are read.
  package let types: [Job.ValueType]
  let conflictClause: String
  package let parameters: PostgresParameters
  package let path: SearchPath
  /// Whether triggers may keep records out without an error.
  let firesTriggers: Bool
  package internal(set) var reader: RecordReader
  /// The schema required for a change; nil before a run begins.
  package var expected: ExpectedTables?

  /// Resolves a load against its table.
  ///
  /// - Throws: `BatchError` with the place in the job: a column that is unknown or generated, an
  ///   invalid expression, a key that no index enforces.
  package init(
    _ load: Job.Load,
    of job: Job,
    into table: PostgresTable,
    _ files: LoadedFiles,
    parameters: PostgresParameters,
    path: SearchPath,
    in session: PostgresSession
  ) throws(BatchError) {
    let names = files.fields.map {
      $0.isEmpty ? "_batch_field" : String(decoding: $0.foldedForSQLite, as: UTF8.self)
    }
    func plainField(_ text: String) -> Int? {
      names.indices.first {
        [names[$0], files.fields[$0], PostgresName.quoted(names[$0])].contains(text)
      }
    }
    // Unchanged values have the types of their columns, which expressions then see too.
    var receivers = names.map { _ in [PostgresColumn]() }
    for assignment in load.columns ?? [] {
      guard let field = plainField(assignment.expression),
        let column = table.columns.column(named: assignment.column)
      else { continue }
      receivers[field].append(column)
    }
    for index in names.indices where receivers[index].isEmpty {
      receivers[index] += table.columns.column(named: files.fields[index]).map { [$0] } ?? []
    }
    let types = try load.types(of: files.fields, job) { receivers[$0].first?.valueType ?? .any }
    var fields = names.indices.map { index in
      var type = types[index].postgresType
      let own = Set(receivers[index].map(\.comparedType))
      if own.count == 1, let only = own.first, !receivers[index][0].isDomain,
        load.types[files.fields[index]] == nil
      {
        type = only
      }
      return Field(name: names[index], type: type, element: types[index].element)
    }
    let record = fields.map { "NULL::\($0.type) AS \(PostgresName.quoted($0.name))" }
    let compiler = PostgresExpressionCompiler(
      session: session,
      table: table,
      parameters: parameters,
      path: path,
      record: (
        "(SELECT \(record.joined(separator: ", "))) AS \(Self.record)", fields.map(\.name)
      )
    )
    let resolved = try load.resolved(files.fields, of: job) { name throws(BatchError) in
      try table.requireSettableColumn(named: name)
    } value: { source, column throws(BatchError) in
      switch source {
      case .field(let index): return Value.field(index)
      case .expression(let text, let place):
        if let index = plainField(text) { return .field(index) }
        return .expression(
          try compiler.assignment(of: PostgresExpression(text, at: place), to: column.name)
        )
      }
    }
    (columns, values) = (resolved.map(\.column), resolved.map(\.value))
    func name(_ name: String) -> String { table.columns.column(named: name)?.name ?? name }
    conflictClause = try load.conflictClause(
      of: job,
      into: table.title,
      primaryKey: table.indexes.first(where: \.isPrimary)?.columns.compactMap(\.self),
      setting: columns.map(\.name),
      quoted: { PostgresName.quoted(name($0)) },
      isSame: { name($0) == name($1) }
    )
    // An expression may read any of them, and even constants take a row for each record.
    let plain = values.compactMap { if case .field(let index) = $0 { index } else { nil } }
    if plain.count == values.count {
      for index in fields.indices { fields[index].isUsed = plain.contains(index) }
    }
    firesTriggers = try table.firesTriggers(on: .insert, in: session)
    reader = RecordReader(files, load, types: types)
    (self.fields, self.types) = (fields, types)
    (self.table, self.parameters, self.path) = (table, parameters, path)
  }

  /// What a run of it depends on of the schema as it is now.
  func expectedTables(
    in database: PostgresDatabase,
    _ session: PostgresSession
  ) throws(BatchError) -> ExpectedTables {
    try ExpectedTables(
      of: table,
      key: nil,
      using: columns,
      reading: values.compactMap {
        if case .expression(let value) = $0 { value.reads } else { nil }
      },
      in: database,
      session
    )
  }

  /// Checks, before the first chunk, whether records can be inserted at all; inserts none.
  ///
  /// - Throws: What ``PostgresChange/check(in:)`` does; `unstableKey` if no index has the columns by
  ///   which rows are to be found.
  func check(_ job: Job, in session: PostgresSession) throws(BatchError) {
    _ = try session.requireWriting()
    try table.requireOwnTransaction(in: session)
    try table.requireRightToInsert()
    try table.requirePolicy(for: .insert, in: session)
    let statement = statement(for: [], of: ValueBlock(columns: fields.count, capacity: 0))
    try requireValues(statement.values, of: job, in: session)
    do throws(BatchError) {
      try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
        () throws(BatchError) in
        try session.execute("EXPLAIN \(statement.sql)", statement.values)
      }
    } catch {
      guard error.postgres?.state == .invalidColumnReference else { throw error }
      throw Job.Load.noUniqueIndex(of: table.title, job)
    }
  }

  /// Refuses expressions that are not the value of one record.
  ///
  /// A set of rows would lose records and insert others twice, and an aggregate would be that of a chunk. A
  /// condition takes neither.
  private func requireValues(
    _ arguments: [PostgresValue],
    of job: Job,
    in session: PostgresSession
  ) throws(BatchError) {
    for (column, value) in zip(columns, values) {
      guard case .expression(let expression) = value else { continue }
      let sql =
        "EXPLAIN SELECT FROM \(records) WHERE (\(expression.sql(parameters, .place))) IS NULL"
      do throws(BatchError) {
        try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
          () throws(BatchError) in try session.execute(sql, arguments)
        }
      } catch {
        guard let state = error.postgres?.state,
          [.featureNotSupported, .groupingError, .windowingError].contains(state)
        else { throw error }
        throw BatchError(
          .invalidSQL,
          "it is not the value of one record: \(error.message)",
          at: job.place(of: JobPath("action", "columns", column.name)),
          remedy: "use what gives one value, or a subquery that does",
          underlying: error
        )
      }
    }
  }

  /// Whether chunks are committed in the order of the records: which of two records with one key
  /// stays depends on it.
  var isInOrder: Bool { !conflictClause.isEmpty }

  // MARK: Statements

  /// The name of a record in expressions.
  private static let record = "_batch_record"

  package var sql: String {
    let names = PostgresName.list(columns.map(\.name))
    let values = values.indices.map { sql(ofValue: $0) }.joined(separator: ", ")
    return "INSERT INTO \(table.sql) (\(names)) SELECT \(values) FROM \(records)\(conflictClause)"
  }

  /// Without the type of the column, the server would not convert all types.
  private func sql(ofValue index: Int) -> String {
    switch values[index] {
    case .expression(let value): value.sql(parameters, .place)
    case .field(let field):
      "\(Self.record).\(PostgresName.quoted(fields[field].name))::\(columns[index].comparedType)"
    }
  }

  /// The arrays as rows.
  ///
  /// In `FROM`, the server would keep each of them aside first, which takes half as long again.
  private var records: String {
    let used = fields.filter(\.isUsed).enumerated().map { index, field in
      let array = "$\(parameters.values.count + index + 1)::\(field.element.arrayName)"
      return "pg_catalog.unnest(\(array))::\(field.type) AS \(PostgresName.quoted(field.name))"
    }
    return "(SELECT \(used.joined(separator: ", "))) AS \(Self.record)"
  }

  /// The statement that inserts some records; with NULL for a field, if one is named.
  func statement(
    for rows: [Int],
    of values: ValueBlock,
    clearing cleared: Int? = nil
  ) -> PostgresStatement {
    PostgresStatement(sql: sql, values: arrays(rows, values, clearing: cleared))
  }

  private func arrays(
    _ rows: [Int],
    _ values: ValueBlock,
    clearing cleared: Int? = nil
  ) -> [PostgresValue] {
    parameters.values
      + fields.indices.filter { fields[$0].isUsed }.map { field in
        var array = PostgresArray(of: fields[field].element, capacity: rows.count)
        for row in rows {
          if field == cleared { array.appendNull() } else { array.append(values, row, field) }
        }
        return .array(array)
      }
  }

  /// What some records would set, as texts in the order of ``columns``; inside the caller's
  /// transaction.
  func preview(
    _ rows: [Int],
    of read: ReadRecords,
    in session: PostgresSession
  ) throws(BatchError) -> [[String?]] {
    let values = values.indices.map {
      "(\(sql(ofValue: $0)))::\(columns[$0].type)::pg_catalog.text"
    }
    let shown = try session.execute(
      "SELECT \(values.joined(separator: ", ")) FROM \(records)",
      arrays(rows, read.values)
    )
    return (0..<shown.count).map { row in columns.indices.map { shown.text(row, $0) } }
  }

  // MARK: Files

  /// Reads records, as many as may be held.
  func records(_ keys: RowKeys) throws(BatchError) -> ReadRecords {
    guard case .integers(let numbers) = keys.values else {
      preconditionFailure("records are numbered")
    }
    return try Self.onEachHost { () throws(BatchError) in
      try reader.records(numbered: numbers.map { Int($0) - 1 }, holding: ChunkBytes.chunkLimit)
    }
  }

  /// Refuses files that are not those with which the run began.
  func refuseChanged(_ load: Job.Load) throws(BatchError) {
    try Self.onEachHost { () throws(BatchError) in try reader.files.refuseChanged(by: load) }
  }

  private static func onEachHost<Result>(
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    do throws(BatchError) {
      return try body()
    } catch {
      guard error.code == .inputChanged else { throw error }
      var error = error
      error.message += "; each host that takes part needs the same files at the same place"
      throw error
    }
  }
}

extension Job.ValueType {
  fileprivate var element: PostgresArray.Element {
    switch self {
    case .integer: .integer
    case .real: .real
    case .boolean: .boolean
    case .blob: .blob
    case .number, .text, .any: .text
    }
  }

  fileprivate var postgresType: String {
    switch self {
    case .integer: "pg_catalog.int8"
    case .real: "pg_catalog.float8"
    case .boolean: "pg_catalog.bool"
    case .blob: "pg_catalog.bytea"
    case .number: "pg_catalog.numeric"
    case .text, .any: "pg_catalog.text"
    }
  }
}

extension PostgresColumn {
  /// The type of the values that the column takes from a file.
  fileprivate var valueType: Job.ValueType {
    switch form {
    case .boolean: .boolean
    case .integer: .integer
    case .singleReal, .real: .real
    case .number: .number
    case .blob: .blob
    // `text`, `varchar`, `char(n)`, `name`, `json`, `jsonb`.
    case .text: [25, 1043, 1042, 19, 114, 3802].contains(baseType) ? .text : .any
    }
  }
}
#endif
