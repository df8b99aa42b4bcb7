#if PostgreSQL
import BatchJobs
package import BatchRuns
package import BatchIdentifiers

/// Gives the rows of a run their former values, or brings deleted rows back, by SQL alone.
///
/// A chunk whose rows are all as the run left them takes one statement. Otherwise its rows are
/// locked and told apart: those that are as before, those that are gone, and those that somebody has
/// changed since.
package struct PostgresUndo: Sendable {
  package let records: UndoRecords
  /// Whether rows are undone even if others have changed them since.
  package let overwrites: Bool
  package let path: SearchPath
  /// Whether chunks are undone in reverse order, one after another, since constraints, triggers or
  /// rows that refer to one another make the order matter.
  package let isInOrder: Bool
  /// Whether triggers may change what is restored.
  let firesTriggers: Bool
  /// Whether each row of an update has its own statement: values that rows have exchanged would meet.
  private let isOneByOne: Bool
  /// The schema required for a change; nil before a run begins.
  package var expected: ExpectedTables?

  var table: PostgresTable { records.table }
  package var key: PostgresKey { records.key }
  var columns: [PostgresColumn] { records.columns }

  package init(
    of records: UndoRecords,
    overwriting overwrites: Bool,
    path: SearchPath,
    in session: PostgresSession
  ) throws(BatchError) {
    self.records = records
    self.overwrites = overwrites
    self.path = path
    let table = records.table
    isInOrder = table.isAffectedByOrder(
      of: records.isDeletion ? nil : records.columns.map(\.name)
    )
    isOneByOne =
      !records.isDeletion && table.mayCollide(setting: records.columns.map(\.name))
    firesTriggers = try table.firesTriggers(
      on: records.isDeletion ? .insert : .update,
      in: session
    )
  }

  package func expectedTables(
    in database: PostgresDatabase,
    _ session: PostgresSession
  ) throws(BatchError) -> ExpectedTables {
    try ExpectedTables(of: table, key: key, using: columns, in: database, session)
  }

  // MARK: Statements

  private static let record = "_batch_record"

  /// The condition that joins a row with its record.
  private var isRecorded: String {
    key.columns.map { column in
      let isOptional = table.columns.first { $0.name == column.name }?.isOptional ?? true
      return
        "\(own(column.name)) \(isOptional ? "IS NOT DISTINCT FROM" : "=") \(recorded(column.name))"
    }.joined(separator: " AND ")
  }

  private func own(_ column: String) -> String { PostgresName.qualified(table.name, column) }

  private func recorded(_ column: String) -> String {
    "\(Self.record).\(PostgresName.quoted(column))"
  }

  private var values: [String] { columns.map { own($0.name) } }
  private var before: [String] { columns.indices.map { recorded(UndoRecords.before($0)) } }
  private var after: [String] { columns.indices.map { recorded(UndoRecords.after($0)) } }

  /// Whether values are the same, bit for bit.
  private static func same(_ values: [String], _ others: [String]) -> String {
    values.isEmpty
      ? "true"
      : "pg_catalog.record_image_eq(ROW(\(values.joined(separator: ", "))),"
        + " ROW(\(others.joined(separator: ", "))))"
  }

  private var isAsBefore: String { Self.same(values, before) }
  private var isAsLeft: String {
    records.isDeletion ? "false" : Self.same(values, after)
  }

  private var sets: String {
    zip(columns, before).map { "\(PostgresName.quoted($0.name)) = \($1)" }.joined(separator: ", ")
  }

  /// The records of the keys, as a source and its condition.
  private func source(
    of keys: RowKeys
  ) throws(BatchError) -> (source: PostgresStatement, condition: String) {
    let (relation, join) = try keys.relation(in: table, as: Self.record, after: 0)
    let bounds = keys.bounds(in: table, as: Self.record).map { [$0] } ?? []
    return (
      PostgresStatement(
        sql: "\(records.sql) AS \(Self.record) CROSS JOIN \(relation.sql)",
        values: relation.values
      ),
      ([join] + bounds).joined(separator: " AND ")
    )
  }

  /// The statement that restores the rows of some keys, which exist if `isPresent`; it returns how
  /// many have their former values afterwards, and how many it has written.
  private func restoration(
    of keys: RowKeys,
    present isPresent: Bool,
    where condition: String? = nil
  ) throws(BatchError) -> PostgresStatement {
    let (source, found) = try source(of: keys)
    var conditions = [found] + (condition.map { [$0] } ?? [])
    let change: String
    if isPresent {
      conditions.append(isRecorded)
      if let bounds = keys.bounds(in: table) { conditions.append(bounds) }
      change =
        "UPDATE \(table.sql) SET \(sets) FROM \(source.sql) WHERE \(conditions.joined(separator: " AND "))"
        + " RETURNING \(isAsBefore) AS restored"
    } else {
      conditions.append("NOT EXISTS (SELECT FROM \(table.sql) WHERE \(isRecorded))")
      let names = key.columns.map(\.name) + columns.map(\.name)
      let stored = names.filter { name in !isComputed(name) }
      let sources = key.columns.map { recorded($0.name) } + before
      let selected = zip(names, sources).filter { !isComputed($0.0) }.map(\.1)
      change =
        "INSERT INTO \(table.sql) (\(PostgresName.list(stored))) OVERRIDING SYSTEM VALUE"
        + " SELECT \(selected.joined(separator: ", ")) FROM \(source.sql)"
        + " WHERE \(conditions.joined(separator: " AND ")) RETURNING true AS restored"
    }
    return PostgresStatement(
      sql:
        "WITH changed AS (\(change)) SELECT count(*) FILTER (WHERE restored), count(*) FROM changed",
      values: source.values
    )
  }

  private func isComputed(_ name: String) -> Bool {
    table.columns.first { $0.name == name }?.isGenerated ?? false
  }

  /// How a row compares with its record.
  enum State: String {
    case asLeft, asBefore, changed, gone
  }

  /// The columns of a query over rows and their records: the state, and for a changed row what is
  /// different.
  private var judgement: String {
    let (place, text) = (own("ctid"), differences)
    return """
      CASE WHEN \(place) IS NULL THEN 'gone' WHEN \(isAsBefore) THEN 'asBefore' WHEN \(isAsLeft) THEN 'asLeft' \
      ELSE 'changed' END AS state, CASE WHEN \(place) IS NULL OR \(isAsBefore) OR \(isAsLeft) THEN NULL \
      ELSE \(text) END AS difference
      """
  }

  /// What is different of a changed row, in words.
  private var differences: String {
    func shown(_ value: String, _ column: PostgresColumn) -> String {
      let text = "pg_catalog.left(\(value)::pg_catalog.text, 60)"
      switch column.form {
      case .integer, .number, .real, .singleReal, .boolean: return "coalesce(\(text), 'NULL')"
      case .blob, .text: return "pg_catalog.quote_nullable(\(text))"
      }
    }
    let parts = columns.enumerated().map { index, column in
      let (now, was) = (values[index], before[index])
      let name = "\(column.name.quotedForMessage) is "
      var words = "\(Array(name.utf8).span.textInSQL), \(shown(now, column))"
      var left = was
      if records.isDeletion {
        words += ", ' and was ', \(shown(was, column))"
      } else {
        left = after[index]
        words +=
          ", ', the run had set ', \(shown(left, column)), ', and before it was ', \(shown(was, column))"
      }
      return "CASE WHEN NOT \(Self.same([now], [left])) THEN pg_catalog.concat(\(words)) END"
    }
    // An array, since a function takes at most a hundred arguments.
    let all = "ARRAY[\(parts.joined(separator: ", "))]::pg_catalog.text[]"
    return "pg_catalog.array_to_string(\(all), '; ')"
  }

  /// The query for the state of each row: the number of its key, its state, and what is different.
  private func states(of keys: RowKeys) throws(BatchError) -> PostgresStatement {
    let (source, found) = try source(of: keys)
    return PostgresStatement(
      sql: "SELECT \(RowKeys.number), \(judgement) FROM \(source.sql)"
        + " LEFT JOIN \(table.sql) ON \(isRecorded) WHERE \(found)",
      values: source.values
    )
  }

  /// The error of a row that is neither as the run left it nor as it was before.
  private func changedSince(_ difference: String?) -> BatchError {
    let (what, remedy) =
      records.isDeletion
      ? (
        "a row with the key exists again",
        "use --overwrite to give it the values of the deleted one"
      )
      : (
        firesTriggers
          ? "somebody, or a trigger, has changed the row since"
          : "somebody has changed the row since",
        "use --overwrite to undo it anyway"
      )
    return BatchError(
      .changedSince,
      "\(what): \(difference ?? "")",
      remedy: remedy
    )
  }

  /// The error of a row that has other values after its triggers have run.
  private var notRestored: BatchError {
    BatchError(
      .notRestored,
      "a trigger of \(table.title.quotedForMessage) changes or deletes the row that the undo restores",
      remedy: "disable the trigger for as long as the undo takes"
    )
  }
}

extension PostgresUndo: ChunkChange {
  package func countingStatement(for keys: RowKeys) throws(BatchError) -> PostgresStatement? {
    guard !isOneByOne, !firesTriggers else { return nil }
    if records.isDeletion { return try restoration(of: keys.anywhere, present: false) }
    // Rows that are as before are not written again, and are told apart by a listing.
    return try restoration(
      of: keys.anywhere,
      present: true,
      where: "NOT \(isAsBefore)" + (overwrites ? "" : " AND \(isAsLeft)")
    )
  }

  package func counted(
    _ keys: RowKeys,
    by answer: PostgresResult
  ) throws(BatchError) -> ChunkResult {
    let restored = Int(answer.integer(0, 0) ?? 0)
    guard restored == keys.count, answer.integer(0, 1) == answer.integer(0, 0),
      key.origin != .declared
    else {
      throw BatchError(.chunkNotWhole, "some rows were not restored")
    }
    var written = ChunkResult()
    written.succeeded = restored
    return written
  }

  package func canBeListed(_ error: BatchError) -> Bool {
    error.code == .chunkNotWhole || error.isAboutAmount || table.isAboutRows(error)
  }

  package func list(
    _ keys: RowKeys,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult {
    let keys = keys.anywhere
    try lock(keys, in: session)
    var written = ChunkResult()
    var eligible: [Int] = []
    var gone: Set<Int> = []
    try forEachState(of: keys, in: session) { number, state, difference in
      switch state {
      case .asBefore: written.passedOver.unchanged.insert(number)
      case .gone where !records.isDeletion: written.passedOver.vanished.insert(number)
      case .gone:
        gone.insert(number)
        eligible.append(number)
      case .asLeft: eligible.append(number)
      case .changed where overwrites: eligible.append(number)
      case .changed: written.failures.append((number, changedSince(difference)))
      }
    }
    eligible.sort()
    written.failures.sort { $0.number < $1.number }
    if let failure = written.failures.dropFirst(policy.limit).first {
      throw policy.refusal(failure.error.about(keys.key(at: failure.number)))
    }
    let failures = try session.bisect(
      eligible.count,
      method,
      onFailure: policy.after(written.failures.count),
      isAboutRows: table.isAboutRows,
      naming: { [eligible] error, row in error.about(keys.key(at: eligible[row])) }
    ) { part throws(BatchError) in
      let rows = Array(eligible[part])
      for piece in isOneByOne ? rows.map({ [$0] }) : [rows] {
        try restore(piece.filter { !gone.contains($0) }, of: keys, present: true, in: session)
        try restore(piece.filter(gone.contains), of: keys, present: false, in: session)
      }
    }
    written.succeeded = eligible.count - failures.count
    written.failures += failures.map { (eligible[$0.number], $0.error) }
    written.failures.sort { $0.number < $1.number }
    return written
  }

  private func restore(
    _ rows: [Int],
    of keys: RowKeys,
    present isPresent: Bool,
    in session: PostgresSession
  ) throws(BatchError) {
    // Of a row without other columns there is nothing to set.
    if rows.isEmpty || isPresent && columns.isEmpty { return }
    let part = keys.selecting(rows)
    let statement = try restoration(of: part, present: isPresent)
    let answer = try session.execute(statement.sql, statement.values)
    let (restored, changed) = (Int(answer.integer(0, 0) ?? 0), Int(answer.integer(0, 1) ?? 0))
    guard changed <= rows.count else { throw table.ambiguous(key) }
    guard changed == rows.count else {
      // The rows are locked, so nobody else has changed a missing one.
      if table.hasRowSecurity { throw table.rowIsProtected }
      throw try table.keepsRow(from: isPresent ? .update : .insert, in: session) ?? notRestored
    }
    guard restored == changed else { throw notRestored }
    guard firesTriggers else { return }
    var isRestored = true
    try forEachState(of: part, in: session) { _, state, _ in
      if state != .asBefore { isRestored = false }
    }
    if !isRestored { throw notRestored }
  }

  private func forEachState(
    of keys: RowKeys,
    in session: PostgresSession,
    _ body: (_ number: Int, _ state: State, _ difference: String?) -> Void
  ) throws(BatchError) {
    let statement = try states(of: keys)
    let found = try session.execute(statement.sql, statement.values)
    guard let numbers = found.numbers() else { throw table.ambiguous(key) }
    guard numbers == RangeSet(0..<keys.count) else {
      throw BatchError(
        .damagedFile,
        "\(records.sql) has \(numbers.indexCount.grouped) of \(keys.count.grouped) records of a chunk",
        at: session.address.description,
        remedy: "records were removed by hand; undo the others with --ids"
      )
    }
    for row in 0..<found.count {
      guard let number = found.integer(row, 0),
        let state = State(rawValue: found.text(row, 1) ?? "")
      else { continue }
      body(Int(number) - 1, state, found.text(row, 2))
    }
  }

  /// Prevents others from changing rows until the end of the transaction, if the role may lock them.
  private func lock(_ keys: RowKeys, in session: PostgresSession) throws(BatchError) {
    guard table.rights.updates else { return }
    let (relation, join) = try keys.relation(in: table, after: 0)
    try session.execute(
      "SELECT FROM \(table.sql), \(relation.sql) WHERE \(join)"
        + " FOR NO KEY UPDATE OF \(PostgresName.quoted(table.name))",
      relation.values
    )
  }
}

// MARK: Checks

extension PostgresUndo {
  /// Checks, before the first chunk and outside a transaction, whether rows can be restored; changes
  /// nothing.
  ///
  /// - Returns: Notes for the operator.
  /// - Throws: What ``PostgresChange/check(in:)`` does.
  package func check(in session: PostgresSession) throws(BatchError) -> [String] {
    let role = try session.requireWriting()
    try table.requireOwnTransaction(in: session)
    if records.isDeletion {
      try table.requireRightToInsert()
    } else {
      try table.requireRights(setting: columns.map(\.name))
    }
    try table.requirePolicy(for: records.isDeletion ? .insert : .update, in: session)
    let keys = try RowKeys.sample(of: key)
    let statements = try [states(of: keys), restoration(of: keys, present: !records.isDeletion)]
    try session.transaction(TransactionOptions(isReadOnly: true, searchPath: path)) {
      () throws(BatchError) in
      for statement in statements {
        try session.execute("EXPLAIN \(statement.sql)", statement.values)
      }
    }
    let meddling = table.triggers.filter {
      records.isDeletion && $0.isEnabled && $0.isForEachRow && $0.time == "BEFORE"
        && $0.events.contains("INSERT")
    }
    return table.notes(for: role)
      + meddling.map {
        "the trigger \($0.name) of \(table.title.quotedForMessage) runs before each row that is restored: a row that it"
          + " changes is not restored"
      }
  }

  /// The statement that restores rows, for display.
  package func statementText() throws(BatchError) -> String {
    try restoration(of: .sample(of: key), present: !records.isDeletion).sql
  }
}

// MARK: Foreseeing

extension PostgresUndo {
  /// How many keys are looked at by one statement.
  private static let foreseenTogether = 100_000

  /// What an undo would do with rows, without writing anything, and the first that it would leave;
  /// inside the caller's transaction.
  package func foresee(
    _ list: PackedIdentifiers,
    telling limit: Int,
    in session: PostgresSession
  ) throws(BatchError) -> (Outcomes, [String]) {
    var outcomes = Outcomes()
    var left: [String] = []
    for first in stride(from: 0, to: list.count, by: Self.foreseenTogether) {
      let positions = first..<min(first + Self.foreseenTogether, list.count)
      let keys = try RowKeys(list, positions, key: key)
      let statement = try states(of: keys)
      let counts = try session.execute(
        "SELECT state, count(*) FROM (\(statement.sql)) AS s GROUP BY state",
        statement.values
      )
      for row in 0..<counts.count {
        let count = Int(counts.integer(row, 1) ?? 0)
        switch State(rawValue: counts.text(row, 0) ?? "") {
        case .asBefore: outcomes.unchanged += count
        case .gone where !records.isDeletion: outcomes.vanished += count
        case .changed where !overwrites: outcomes.failed += count
        default: outcomes.succeeded += count
        }
      }
      guard outcomes.failed > left.count, left.count < limit else { continue }
      // Found as for the counts: for a few rows of tables without statistics, the server would choose a plan
      // that reads one of them again for each row of the other.
      let changed = try session.execute(
        "WITH s AS MATERIALIZED (\(statement.sql)) SELECT * FROM s WHERE state = 'changed'"
          + " ORDER BY 1 LIMIT \(limit - left.count)",
        statement.values
      )
      for row in 0..<changed.count {
        let number = Int(changed.integer(row, 0) ?? 1) - 1
        left.append(changedSince(changed.text(row, 2)).about(keys.key(at: number)).message)
      }
    }
    return (outcomes, left)
  }
}
#endif
