#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

extension BatchError.Code {
  /// Rows are not what they were when they were read: the code that SQLite's transforms have.
  fileprivate static let rowsChanged = Self(rawValue: "rowsChanged")
}

extension BatchError {
  /// Whether nothing was done, since rows are not what they were when they were read.
  package var isAboutStaleRows: Bool { code == .rowsChanged }

  fileprivate static var staleRows: BatchError {
    BatchError(
      .rowsChanged,
      "rows were changed by somebody else since they were read",
      remedy: "read them again"
    )
  }
}

extension PostgresTransform: ChunkChange {
  package var writtenTables: [PostgresTable] { [table] }

  package func countingStatement(
    for chunk: TransformedRows
  ) throws(BatchError) -> PostgresStatement? {
    // What failed is counted over the whole run, which is done by listing.
    guard chunk.failures.isEmpty, !chunk.changed.isEmpty else { return nil }
    return try statement(for: chunk, chunk.changed)
  }

  package func counted(
    _ chunk: TransformedRows,
    by answer: PostgresResult
  ) throws(BatchError) -> WrittenRows {
    try requireAll(answer.affectedCount, chunk.changed.count)
    var written = WrittenRows()
    written.succeeded = chunk.changed.count
    written.passedOver = chunk.passedOver
    return written
  }

  package func canBeListed(_ error: BatchError) -> Bool {
    error.isAboutAmount || table.isAboutRows(error)
  }

  package func list(
    _ chunk: TransformedRows,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> WrittenRows {
    try list(chunk, method, onFailure: policy, in: session) { part throws(BatchError) in
      let statement = try statement(for: chunk, part)
      let answer = try session.execute(statement.sql, statement.values)
      try requireAll(answer.affectedCount, part.count)
      return []
    }
  }

  /// Sets parts of the rows of a chunk, each in a savepoint; `set` sets some of the rows, and gives those of them that were
  /// passed over.
  fileprivate func list(
    _ chunk: TransformedRows,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession,
    _ set: ([Int]) throws(BatchError) -> [Int]
  ) throws(BatchError) -> WrittenRows {
    var written = WrittenRows()
    written.passedOver = chunk.passedOver
    if let failure = chunk.failures.dropFirst(policy.limit).first {
      throw policy.refusal(failure.error.about(chunk.rows.keys.key(at: failure.number)))
    }
    var left: [Int] = []
    let failures = try session.bisect(
      chunk.changed.count,
      method,
      onFailure: policy.after(chunk.failures.count),
      isAboutRows: table.isAboutRows,
      naming: { $0.about(chunk.rows.key(of: chunk.changed[$1])) }
    ) { part throws(BatchError) in left += try set(Array(chunk.changed[part])) }
    for row in left { written.passedOver.noLongerMatching.insert(chunk.rows.numbers[row]) }
    written.failures = chunk.failures
    written.failures += failures.map { (chunk.rows.numbers[chunk.changed[$0.number]], $0.error) }
    written.failures.sort { $0.number < $1.number }
    written.succeeded = chunk.changed.count - failures.count - left.count
    return written
  }

  private func requireAll(_ affected: Int, _ count: Int) throws(BatchError) {
    guard affected <= count else { throw table.ambiguous(key) }
    guard affected == count else { throw .staleRows }
  }

  // MARK: The statement

  /// The statement that sets some of the rows of a chunk, if they are what was read.
  func statement(
    for chunk: TransformedRows,
    _ rows: [Int],
    returning output: String = ""
  ) throws(BatchError) -> PostgresStatement {
    let isWhole = rows.count == chunk.count
    let keys =
      isWhole ? chunk.rows.keys : chunk.rows.keys.selecting(rows.map { chunk.rows.numbers[$0] })
    let version = RowKeys.Companion(name: "_batch_version", values: versions(of: chunk.rows, rows))
    var companions = [version]
    var assignments: [String] = []
    for (index, column) in writes.enumerated() {
      let (value, flags) = try sent(index, chunk.values, rows)
      companions.append(value)
      let name = PostgresName.quoted(column.name)
      var assigned = value.sql
      if value.values.element == .text { assigned += "::\(column.comparedType)" }
      if let flags {
        companions.append(flags)
        let own = PostgresName.qualified(table.name, column.name)
        assigned = "CASE WHEN \(flags.sql) THEN \(assigned) ELSE \(own) END"
      }
      assignments.append("\(name) = \(assigned)")
    }
    let (relation, join) = try keys.relation(
      in: table,
      after: parameters.values.count,
      with: companions
    )
    var conditions = [join, "\(reader.version) = \(version.sql)"]
    if let bounds = keys.bounds(in: table) { conditions.append(bounds) }
    if let predicate = condition.predicate { conditions.append(predicate.sql(parameters, .place)) }
    return .init(
      sql: "UPDATE \(table.sql) SET \(assignments.joined(separator: ", ")) FROM \(relation.sql)"
        + " WHERE \(conditions.joined(separator: " AND "))\(output)",
      values: parameters.values + relation.values
    )
  }

  private func versions(of chunk: ReadRows, _ rows: [Int]) -> PostgresArray {
    if table.kind == .view { return PostgresArray(rows.map { chunk.versions[$0] }) }
    var array = PostgresArray(of: .transaction)
    for row in rows {
      array.append(transaction: UInt32(truncatingIfNeeded: chunk.versions[row]))
    }
    return array
  }

  /// The values of a written column, and which rows have one if not all do.
  private func sent(
    _ column: Int,
    _ values: RowValues,
    _ rows: [Int]
  ) throws(BatchError) -> (values: RowKeys.Companion, flags: RowKeys.Companion?) {
    var array = PostgresArray(of: element(of: column, values, rows))
    var flags = PostgresArray(of: .boolean)
    var isPartial = false
    for row in rows {
      let kind = values.kind(row, column)
      flags.append(kind != .unset)
      if kind == .unset { isPartial = true }
      switch (kind, array.element) {
      case (.null, _), (.unset, _): array.appendNull()
      case (.integer, .integer): array.append(values.integer(row, column))
      case (.integer, .real): array.append(Double(values.integer(row, column)))
      case (.real, .real): array.append(values.real(row, column))
      case (.integer, _): array.append(bytes: Array(String(values.integer(row, column)).utf8).span)
      case (.real, _):
        array.append(bytes: Array(PostgresValue.text(of: values.real(row, column)).utf8).span)
      case (.text, _), (.blob, _): array.append(bytes: Array(values.bytes(row, column)).span)
      }
    }
    let own = RowKeys.Companion(name: "_batch_value_\(column + 1)", values: array)
    let set = RowKeys.Companion(name: "_batch_set_\(column + 1)", values: flags)
    return (own, isPartial ? set : nil)
  }

  /// What the values of a column are sent as: numbers and blobs where all of them are, and texts otherwise, of which the server
  /// makes values as it does of literals, or says why it cannot.
  private func element(
    of column: Int,
    _ values: RowValues,
    _ rows: [Int]
  ) -> PostgresArray.Element {
    func are(_ kinds: RowValues.Kind...) -> Bool {
      rows.allSatisfy {
        [.null, .unset].contains(values.kind($0, column)) || kinds.contains(values.kind($0, column))
      }
    }
    switch writes[column].form {
    case .integer where are(.integer): return .integer
    case .real where are(.real, .integer), .singleReal where are(.real, .integer): return .real
    case .blob where are(.blob): return .blob
    default: return .text
    }
  }
}

/// A transform that locks the rows of a chunk before it sets them, and computes those again that are not what was read:
/// for chunks that others change faster than they can be computed.
struct LockingTransform: ChunkChange {
  let transform: PostgresTransform
  let compute: RowComputation

  var path: SearchPath { transform.path }
  var writtenTables: [PostgresTable] { transform.writtenTables }

  func countingStatement(for chunk: TransformedRows) -> PostgresStatement? { nil }

  func counted(_ chunk: TransformedRows, by answer: PostgresResult) -> WrittenRows {
    preconditionFailure("it has no such statement")
  }

  func canBeListed(_ error: BatchError) -> Bool { false }

  func list(
    _ chunk: TransformedRows,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> WrittenRows {
    let rows = try transform.read(chunk.rows.keys, .locking, in: session)
    let now = try chunk.renewed(rows, compute)
    // Nobody waits for that under a lock: the chunk is done anew.
    if let postponement = now.postponement { throw postponement }
    return try transform.list(now, method, onFailure: policy, in: session) {
      part throws(BatchError) in
      let statement = try transform.statement(
        for: now,
        part,
        returning: " RETURNING \(RowKeys.number)"
      )
      let answer = try session.execute(statement.sql, statement.values)
      guard let numbers = answer.numbers() else { throw transform.table.ambiguous(transform.key) }
      // Nobody else can have changed them: a trigger keeps the row as it is.
      return part.indices.filter { !numbers.contains($0) }.map { part[$0] }
    }
  }
}
#endif
