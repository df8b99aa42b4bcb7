package import BatchRuns
package import BatchIdentifiers
package import BatchJobs

/// Inserts records of files into a table, one row each.
package struct RowInsertion: Sendable {
  package let entity: Entity
  /// The columns that get values, in the order of the statement.
  package let columns: [String]
  /// The names of the records' values.
  private let fields: [String]
  /// The value of each column, over the fields.
  private let values: [SQLExpression]
  /// The field that each column gets unchanged; nil if any column gets another value.
  private let plainFields: [Int]?
  private let conflictClause: String
  /// The table's own clauses would replace or leave rows without an error.
  private let orAbort: String
  private let parameters: [String: SQLValue]

  /// Resolves a load against its table.
  ///
  /// - Throws: `BatchError` with the place in the job: a column that is unknown or generated, an
  ///   invalid expression, a key that no index enforces.
  package init(
    _ load: Job.Load,
    of job: Job,
    into entity: Entity,
    fields: [String],
    parameters: [String: SQLValue],
    in connection: Connection
  ) throws(BatchError) {
    self.entity = entity
    self.fields = fields
    self.parameters = parameters
    let compiler = ExpressionCompiler(
      connection: connection,
      entity: .record(of: fields),
      parameters: parameters.keys
    )
    let resolved = try load.resolved(fields, of: job, column: entity.insertableColumn) {
      source,
      _ throws(BatchError) in
      switch source {
      case .field(let index): return SQLExpression(SQLName.standard(fields[index]))
      case .expression(let text, let place):
        let value = SQLExpression(text, at: place)
        try compiler.check(value)
        return value
      }
    }
    columns = resolved.map(\.column)
    values = resolved.map(\.value)
    let plain = values.map { value in
      fields.firstIndex { value.text == $0 || value.text == SQLName.standard($0) }
    }
    plainFields = plain.contains(nil) ? nil : plain.compactMap(\.self)
    conflictClause = try load.conflictClause(
      of: job,
      into: entity.name,
      primaryKey: entity.key?.columns,
      setting: columns,
      quoted: SQLName.quoted,
      isSame: SQLName.equal
    )
    orAbort = try connection.conflictClauses(of: entity.table).isEmpty ? "" : "OR ABORT "
    do throws(BatchError) {
      _ = try connection.prepare(sql)
    } catch {
      guard error.message.hasPrefix("ON CONFLICT clause does not match") else {
        throw error.located(at: job.place(of: JobPath("action")))
      }
      throw Job.Load.noUniqueIndex(of: entity.name, job)
    }
  }

  /// The name of a record in expressions, which no table has.
  static let recordName = "_batch_record"

  /// The column that gets a field unchanged; nil if none does.
  package func column(ofField field: String) -> String? {
    zip(columns, values).first { $1.text == field || $1.text == SQLName.standard(field) }?.0
  }

  package var sql: String {
    let target = "INSERT \(orAbort)INTO \(SQLName.quoted(entity.table)) (\(SQLName.list(columns)))"
    if let plainFields {
      let values = plainFields.map { "?\($0 + 1)" }.joined(separator: ", ")
      return "\(target) VALUES (\(values))\(conflictClause)"
    }
    // Without WHERE, ON would be the join of the record.
    return
      "\(record) \(target) SELECT \(valueList) FROM \(Self.recordName) WHERE true\(conflictClause)"
  }

  /// Computes what a record would set, and sets nothing.
  package var previewSQL: String { "\(record) SELECT \(valueList) FROM \(Self.recordName)" }

  private var valueList: String { values.map(\.sql).joined(separator: ", ") }

  /// Named first, so that its numbered parameters come before named ones.
  private var record: String {
    let values = fields.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    return "WITH \(Self.recordName) (\(SQLName.list(fields))) AS (SELECT \(values))"
  }

  /// Inserts the records of a chunk, inside the caller's transaction.
  ///
  /// - Parameters:
  ///   - read: The records.
  ///   - place: The file and the line of a record, for its error.
  ///   - policy: What to do with a record that fails.
  ///   - connection: The connection whose transaction it is.
  /// - Returns: How many rows were inserted or updated, and which records were left out or failed.
  /// - Throws: The error of the record that exceeds the allowed failures, or one that concerns more
  ///   than one record.
  package func write(
    _ read: ReadRecords,
    place: (ReadRecords.Place) -> String,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    try connection.resolvingReferences { unresolved throws(BatchError) in
      try note(&unresolved, of: read, place, in: connection)
    } _: { unresolved throws(BatchError) in
      try insert(read, except: unresolved, place, onFailure: policy, in: connection)
    }
  }

  /// Finds the records that refer to rows that neither exist nor are among the chunk's records.
  private func note(
    _ unresolved: inout [Int: BatchError],
    of read: ReadRecords,
    _ place: (ReadRecords.Place) -> String,
    in connection: Connection
  ) throws(BatchError) {
    let references = try ReferenceTrial(
      of: entity,
      changing: columns,
      among: columns,
      in: connection
    )
    let failed = Set(read.problems.map(\.number))
    for row in 0..<read.count where unresolved[row] == nil && !failed.contains(row) {
      let values = try preview(read, row, in: connection)
      guard let problem = references.problem(with: values, in: connection) else { continue }
      unresolved[row] = BatchError(
        .constraint,
        "\(place(read.places[row])): FOREIGN KEY constraint failed: \(problem)"
      )
    }
  }

  private func insert(
    _ read: ReadRecords,
    except unresolved: [Int: BatchError],
    _ place: (ReadRecords.Place) -> String,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    let statement = try connection.prepare(sql)
    try statement.bind(parameters)
    var written = ChunkResult()
    var problems = read.problems[...]
    func fail(_ number: Int, _ error: BatchError) throws(BatchError) {
      guard written.failures.count < policy.limit else { throw policy.refusal(error) }
      written.failures.append((number, error))
    }
    let ignoring = try connection.ignoringTriggers(setOffBy: sql)
    for row in 0..<read.count {
      if problems.first?.number == row {
        try fail(row, problems.removeFirst().error)
        continue
      }
      if let error = unresolved[row] {
        try fail(row, error)
        continue
      }
      do throws(BatchError) {
        try bind(read.values, row, to: statement)
        try statement.run()
      } catch {
        guard error.isAboutRows else { throw error }
        var error = error
        error.message =
          "\(place(read.places[row])): \(error.message)\(try named(in: error, read, row, connection))"
        // A trigger's RAISE(ROLLBACK) has ended the transaction, and with it the whole chunk.
        if connection.isAutocommit { throw error }
        try fail(row, error)
        continue
      }
      if connection.changes > 0 {
        written.succeeded += 1
      } else if let ignoring, try !isThere(read.values, row, in: connection) {
        let reason = "\(ignoring) keeps the record out, without an error"
        try fail(row, BatchError(.constraint, "\(place(read.places[row])): \(reason)"))
      } else {
        written.passedOver.unchanged.insert(row)
      }
    }
    return written
  }

  /// Whether a record was left out because the job says so: its row exists.
  private func isThere(
    _ values: ValueBlock,
    _ row: Int,
    in connection: Connection
  ) throws(BatchError) -> Bool {
    guard !conflictClause.isEmpty else { return false }
    let again = try connection.prepare(sql.replacing(conflictClause, with: ""))
    try again.bind(parameters)
    try bind(values, row, to: again)
    do throws(BatchError) {
      // Left out by the trigger again, or by a constraint.
      try again.run()
      return false
    } catch {
      guard error.isAboutRows, !connection.isAutocommit else { throw error }
      return true
    }
  }

  private func bind(
    _ values: ValueBlock,
    _ row: Int,
    to statement: borrowing Statement
  ) throws(BatchError) {
    for field in fields.indices where plainFields?.contains(field) ?? true {
      try statement.bind(values, row, field, at: field + 1)
    }
  }

  /// The values of the columns that an error names: `(id is 7)`, or the reference that it does not
  /// name.
  private func named(
    in error: BatchError,
    _ read: ReadRecords,
    _ row: Int,
    _ connection: Connection
  ) throws(BatchError) -> String {
    guard let message = error.sqlite?.message else { return "" }
    if message.hasPrefix("FOREIGN KEY"), !connection.isAutocommit {
      let references = try ReferenceTrial(
        of: entity,
        changing: columns,
        among: columns,
        in: connection
      )
      let values = try preview(read, row, in: connection)
      return references.problem(with: values, in: connection).map { ": \($0)" } ?? ""
    }
    guard let plainFields else { return "" }
    let parts = zip(columns, plainFields).filter { message.contains(".\($0.0)") }.map {
      let value = read.values.value(row, $1).debugDescription
      return "\($0) is \(value.count > 60 ? value.prefix(57) + "…" : value[...])"
    }
    return parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))"
  }

  /// What the first records would set, in the order of ``columns``.
  package func preview(
    _ read: ReadRecords,
    _ row: Int,
    in connection: Connection
  ) throws(BatchError) -> [SQLValue] {
    let statement = try connection.prepare(previewSQL)
    try statement.bind(parameters)
    for field in fields.indices {
      // SQLite leaves out a parameter that nothing reads.
      guard field < statement.parameterCount else { break }
      try statement.bind(read.values, row, field, at: field + 1)
    }
    guard try statement.step() else { return [] }
    return columns.indices.map { statement.value(at: $0) }
  }
}

extension Entity {
  /// The record of a file as a row that expressions can read.
  fileprivate static func record(of fields: [String]) -> Entity {
    let values = fields.map { "NULL AS \(SQLName.quoted($0))" }.joined(separator: ", ")
    return Entity(
      name: RowInsertion.recordName,
      table: RowInsertion.recordName,
      kind: .query,
      key: nil,
      attributes: fields.map { name in
        Attribute(
          name: name,
          column: name,
          type: "",
          isOptional: true,
          isGenerated: false,
          hasDefault: false
        )
      },
      standIn: "(SELECT \(values))"
    )
  }

  fileprivate func insertableColumn(named name: String) throws(BatchError) -> String {
    let attribute = try requireAttribute(named: name)
    guard !attribute.isGenerated else {
      throw BatchError(
        .unknownAttribute,
        "column \(attribute.name.quotedForMessage) is generated and cannot be set",
        remedy: "set the columns it is computed from"
      )
    }
    return attribute.column
  }

  /// The type of the values that a column takes.
  package func valueType(ofColumn column: String) -> Job.ValueType {
    guard let attribute = attributes.first(where: { SQLName.equal($0.column, column) }) else {
      return .any
    }
    let type = attribute.type.uppercased()
    let name = type.prefix { $0 != "(" && $0 != " " }
    switch name {
    case "BOOL", "BOOLEAN": return .boolean
    case "DECIMAL", "NUMERIC", "NUMBER", "MONEY": return .number
    default: break
    }
    let kept = attribute.keptClasses
    if type.isEmpty || type == "ANY" { return .any }
    if type.contains("BLOB") { return .blob }
    if kept.contains(.text) { return .text }
    if kept.contains(.real) { return .real }
    return type.contains("INT") ? .integer : .any
  }
}
