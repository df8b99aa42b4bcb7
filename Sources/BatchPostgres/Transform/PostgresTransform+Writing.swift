#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

extension BatchError {
  /// Whether nothing was done because rows have changed since they were read.
  package var isAboutStaleRows: Bool { code == .rowsChanged }

  fileprivate static var staleRows: BatchError {
    BatchError(
      .rowsChanged,
      "somebody else has changed rows since they were read",
      remedy: "read them again"
    )
  }
}

extension PostgresTransform: ChunkChange {
  package func countingStatement(
    for chunk: TransformedRows<RowKeys>
  ) throws(BatchError) -> PostgresStatement? {
    // Failures count toward the whole run's limit, which only listing checks.
    guard !isOneByOne, chunk.failures.isEmpty, !chunk.changed.isEmpty else { return nil }
    return try statement(for: chunk, chunk.changed)
  }

  package func counted(
    _ chunk: TransformedRows<RowKeys>,
    by answer: PostgresResult
  ) throws(BatchError) -> ChunkResult {
    try requireAll(changedCount(answer), chunk.changed.count)
    var written = ChunkResult()
    written.succeeded = chunk.changed.count
    written.passedOver = chunk.passedOver
    return written
  }

  package func canBeListed(_ error: BatchError) -> Bool {
    error.isAboutAmount || table.isAboutRows(error)
  }

  package func list(
    _ chunk: TransformedRows<RowKeys>,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult {
    try list(chunk, method, onFailure: policy, in: session) { part throws(BatchError) in
      let statement = try statement(for: chunk, part)
      let answer = try session.execute(statement.sql, statement.values)
      try requireAll(changedCount(answer), part.count)
    }
  }

  /// The number of rows that a statement has changed, all of which must be recorded.
  fileprivate func changedCount(_ answer: PostgresResult) throws(BatchError) -> Int {
    guard let undo else { return answer.affectedCount }
    let count = Int(answer.integer(0, 0) ?? 0)
    try RowCopy.require([undo.copy], of: count, in: answer)
    return count
  }

  /// Sets the rows of a chunk in parts, each in a savepoint; `set` sets some of the rows.
  fileprivate func list(
    _ chunk: TransformedRows<RowKeys>,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession,
    _ set: ([Int]) throws(BatchError) -> Void
  ) throws(BatchError) -> ChunkResult {
    var written = ChunkResult()
    written.passedOver = chunk.passedOver
    if let failure = chunk.failures.dropFirst(policy.limit).first {
      throw policy.refusal(failure.error.about(chunk.rows.keys.key(at: failure.number)))
    }
    let failures = try session.bisect(
      chunk.changed.count,
      method,
      onFailure: policy.after(chunk.failures.count),
      isAboutRows: table.isAboutRows,
      naming: { $0.about(chunk.rows.key(of: chunk.changed[$1])) }
    ) { part throws(BatchError) in
      let rows = Array(chunk.changed[part])
      for piece in isOneByOne ? rows.map({ [$0] }) : [rows] { try set(piece) }
    }
    written.failures = chunk.failures
    written.failures += failures.map { (chunk.rows.numbers[chunk.changed[$0.number]], $0.error) }
    written.failures.sort { $0.number < $1.number }
    written.succeeded = chunk.changed.count - failures.count
    return written
  }

  private func requireAll(_ affected: Int, _ count: Int) throws(BatchError) {
    guard affected <= count else { throw table.ambiguous(key) }
    guard affected == count else { throw .staleRows }
  }

  // MARK: The statement

  /// The statement that sets some of the rows of a chunk, if they have not changed since they were read.
  ///
  /// If the keys are a range of integers and most rows get numbers, each row finds its values in the arrays by its key.
  /// This costs the server no more than computing the values itself. Otherwise the statement joins the rows with the
  /// arrays. Texts and blobs always need the join: the server reads an array of them from its start to find an element.
  func statement(
    for chunk: TransformedRows<RowKeys>,
    _ rows: [Int]
  ) throws(BatchError) -> PostgresStatement {
    let elements = writes.indices.map { element(of: $0, chunk.changes.values, rows) }
    let first = parameters.values.count
    if table.kind != .view, 2 * rows.count >= chunk.count,
      elements.allSatisfy(\.hasFixedSize), let number = chunk.rows.keys.number(in: table),
      let bounds = chunk.rows.keys.bounds(in: table)
    {
      // No row has version zero, so a row without values stays as it is.
      var places = [Int?](repeating: nil, count: chunk.count)
      for row in rows { places[chunk.rows.numbers[row]] = row }
      let companions = companions(of: chunk, places, elements)
      let assignments = assignments(companions) {
        "($\(first + $0 + 1)::\(companions[$0].values.element.arrayName))[\(number)]"
      }
      return .init(
        sql: sql(
          setting: assignments.sets,
          from: nil,
          where: [bounds, assignments.isCurrent] + matching,
          among: bounds
        ),
        values: parameters.values + companions.map { .array($0.values) }
      )
    }
    let isWhole = rows.count == chunk.count
    let keys =
      isWhole ? chunk.rows.keys : chunk.rows.keys.selecting(rows.map { chunk.rows.numbers[$0] })
    let companions = companions(of: chunk, rows, elements)
    let assignments = assignments(companions) { companions[$0].sql }
    let (relation, join) = try keys.relation(in: table, after: first, with: companions)
    var conditions = [join, assignments.isCurrent]
    if let bounds = keys.bounds(in: table) { conditions.append(bounds) }
    return .init(
      sql: sql(
        setting: assignments.sets,
        from: relation.sql,
        where: conditions + matching,
        among: try keys.condition(in: table, besideRelationAfter: first)
      ),
      values: parameters.values + relation.values
    )
  }

  private func sql(
    setting sets: String,
    from relation: String?,
    where conditions: [String],
    among rows: String
  ) -> String {
    if let undo { return undo.sql(setting: sets, from: relation, where: conditions, among: rows) }
    return "UPDATE \(table.sql) SET \(sets)\(relation.map { " FROM \($0)" } ?? "")"
      + " WHERE \(conditions.joined(separator: " AND "))"
  }

  private var matching: [String] {
    let rows = condition.predicate.map { [$0.sql(parameters, .place)] } ?? []
    guard writes.contains(where: { $0.type.hasSuffix("[]") || $0.textDependsOnSettings }) else {
      return rows
    }
    // The server writes NULL in an array's text as it does if this setting is on, and reads it so.
    return rows + ["(SELECT pg_catalog.set_config('array_nulls', 'on', true)) = 'on'"]
  }

  /// - Parameters:
  ///   - companions: The result of ``companions(of:_:_:)``.
  ///   - sql: The value of a companion for a row, given its index.
  /// - Returns: The `SET` list, and the condition that a row has not changed since it was read.
  private func assignments(
    _ companions: [RowKeys.Companion],
    _ sql: (Int) -> String
  ) -> (sets: String, isCurrent: String) {
    let places = Dictionary(uniqueKeysWithValues: companions.enumerated().map { ($1.name, $0) })
    let sets = writes.enumerated().map { index, column in
      var assigned = "NULL"
      if let place = places[Companion.value(of: index)] {
        let type = companions[place].values.element == .text ? "::\(column.comparedType)" : ""
        assigned = sql(place) + type
      }
      if let place = places[Companion.nulls(of: index)] {
        assigned = "CASE WHEN \(sql(place)) THEN NULL ELSE \(assigned) END"
      }
      if let place = places[Companion.flags(of: index)] {
        let own = PostgresName.qualified(table.name, column.name)
        assigned = "CASE WHEN \(sql(place)) THEN \(assigned) ELSE \(own) END"
      }
      return "\(PostgresName.quoted(column.name)) = \(assigned)"
    }
    return (sets.joined(separator: ", "), "\(reader.version) = \(sql(0))")
  }

  private enum Companion {
    static let version = "_batch_version"
    static func value(of column: Int) -> String { "_batch_value_\(column + 1)" }
    /// Which rows get NULL, where the array of values has no NULLs.
    static func nulls(of column: Int) -> String { "_batch_null_\(column + 1)" }
    /// Which rows get a value, if not all do.
    static func flags(of column: Int) -> String { "_batch_set_\(column + 1)" }
  }

  /// The arrays sent with the keys.
  ///
  /// - Parameters:
  ///   - chunk: The chunk that has the values.
  ///   - rows: The row for each element of the arrays; nil for none.
  ///   - elements: How the values of each column are sent.
  /// - Returns: The versions, then the values.
  private func companions(
    of chunk: TransformedRows<RowKeys>,
    _ rows: [Int?],
    _ elements: [PostgresArray.Element]
  ) -> [RowKeys.Companion] {
    var companions = [
      RowKeys.Companion(name: Companion.version, values: versions(of: chunk.rows, rows))
    ]
    for (column, element) in elements.enumerated() {
      let sent = sent(column, chunk.changes.values, rows, as: element)
      companions.append(.init(name: Companion.value(of: column), values: sent.values))
      if let nulls = sent.nulls {
        companions.append(.init(name: Companion.nulls(of: column), values: nulls))
      }
      if let flags = sent.flags {
        companions.append(.init(name: Companion.flags(of: column), values: flags))
      }
    }
    return companions
  }

  private func versions(of chunk: ReadRows<RowKeys>, _ rows: [Int?]) -> PostgresArray {
    if table.kind == .view {
      return PostgresArray(rows.map { row in row.map { chunk.marks[$0] } ?? 0 })
    }
    var array = PostgresArray(of: .transaction, capacity: rows.count)
    for row in rows {
      array.append(transaction: row.map { UInt32(truncatingIfNeeded: chunk.marks[$0]) } ?? 0)
    }
    return array
  }

  /// The values of a written column; flags for NULLs, if the values themselves cannot be NULL; flags for rows with a
  /// value, if not all have one.
  private func sent(
    _ column: Int,
    _ values: ValueBlock,
    _ rows: [Int?],
    as element: PostgresArray.Element
  ) -> (values: PostgresArray, nulls: PostgresArray?, flags: PostgresArray?) {
    var array = PostgresArray(of: element, capacity: rows.count)
    var (nulls, flags) = (PostgresArray(of: .boolean), PostgresArray(of: .boolean))
    var (hasNull, isPartial) = (false, false)
    for row in rows {
      let kind = row.map { values.kind($0, column) }
      nulls.append(kind == .null)
      flags.append(kind != .unset)
      hasNull = hasNull || kind == .null
      isPartial = isPartial || kind == .unset
      guard let row, let kind, kind != .null, kind != .unset else {
        switch element {
        case .integer: array.append(Int64(0))
        case .real: array.append(0.0)
        default: array.appendNull()
        }
        continue
      }
      array.append(values, row, column)
    }
    return (array, hasNull && element.hasFixedSize ? nulls : nil, isPartial ? flags : nil)
  }

  /// The form in which a column's values are sent: as numbers or blobs if all of them are, otherwise as texts, which
  /// the server converts like literals, or refuses with a reason.
  private func element(
    of column: Int,
    _ values: ValueBlock,
    _ rows: [Int]
  ) -> PostgresArray.Element {
    func are(_ kinds: ValueBlock.Kind...) -> Bool {
      rows.allSatisfy {
        let kind = values.kind($0, column)
        return kind == .null || kind == .unset || kinds.contains(kind)
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

/// A transform that locks the rows of a chunk before it sets them, and recomputes those that have changed: for chunks
/// that others change faster than they can be computed.
struct LockingTransform: ChunkChange {
  let transform: PostgresTransform
  let compute: RowComputation

  var key: PostgresKey { transform.key }
  var path: SearchPath { transform.path }
  var expected: ExpectedTables? { transform.expected }

  func countingStatement(for chunk: TransformedRows<RowKeys>) -> PostgresStatement? { nil }

  func counted(_ chunk: TransformedRows<RowKeys>, by answer: PostgresResult) -> ChunkResult {
    preconditionFailure("it has no such statement")
  }

  func canBeListed(_ error: BatchError) -> Bool { false }

  func list(
    _ chunk: TransformedRows<RowKeys>,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult {
    let locked = try transform.read(chunk.rows.keys, .locking, in: session)
    // Row security may let the role read rows that it may not lock.
    let rows =
      transform.table.hasRowSecurity && locked.count < chunk.count
      ? try transform.read(chunk.rows.keys, .together, in: session) : locked
    var now = try chunk.renewed(rows, compute)
    if rows.count > locked.count {
      now = now.failing(rowsOtherThan: locked, with: transform.table.rowIsProtected)
    }
    // A postponement must not wait under a lock: the chunk is repeated later.
    if let postponement = now.postponement { throw postponement }
    return try transform.list(now, method, onFailure: policy, in: session) {
      part throws(BatchError) in
      let statement = try transform.statement(for: now, part)
      let count = try transform.changedCount(session.execute(statement.sql, statement.values))
      guard count <= part.count else { throw transform.table.ambiguous(transform.key) }
      // The rows are locked, so nobody else has changed a missing one.
      if count < part.count {
        throw try transform.table.keepsRow(from: .update, in: session) ?? .staleRows
      }
    }
  }
}
#endif
