#if PostgreSQL
package import BatchJobs
import BatchRuns
package import BatchIdentifiers

/// Compares a job's table with a copy of it from before a run, row by row, in the server.
///
/// The rows that the run selected go into a temporary table with their recorded outcomes. One join of
/// table, copy and these rows then finds what the run does not explain, and keeps it in another
/// temporary table. All of it is read from one snapshot.
package struct PostgresVerification {
  private let plan: PostgresPlan
  private let copy: PostgresTable
  private let settings: [Setting]
  /// Why other columns of changed rows may differ, in a clause; nil if they must not.
  private let touched: String?
  private let allowed: Set<String>
  private let session: PostgresSession

  /// A column that the run set.
  private struct Setting {
    let column: PostgresColumn
    /// Its new value, over the row in the copy; nil if it is unknown.
    let value: CheckedExpression?
    /// Why the value cannot be computed again, in a clause.
    let obstacle: String?
  }

  private static let rows = "_batch_rows"
  private static let found = "_batch_found"
  private static let outcome = "_batch_outcome"

  fileprivate init(
    _ plan: PostgresPlan,
    _ copy: PostgresTable,
    allowing allowed: Set<String>,
    in session: PostgresSession
  ) throws(BatchError) {
    (self.plan, self.copy, self.allowed, self.session) = (plan, copy, allowed, session)
    switch plan.work {
    case .change(let change):
      guard case .update(let assignments) = change.action else {
        (settings, touched) = ([], nil)
        return
      }
      settings = assignments.map { assignment in
        Setting(
          column: assignment.column,
          value: assignment.value,
          obstacle: assignment.value.obstacle
        )
      }
    case .transform(let transform, _, _, _):
      settings = transform.writes.map {
        Setting(column: $0, value: nil, obstacle: UncheckedPart.ofProgram)
      }
    case .archiving, .export, .load, .undo:
      (settings, touched) = ([], nil)
      return
    }
    let trigger = plan.table.triggers.first {
      $0.isEnabled && $0.isForEachRow && $0.events.contains("UPDATE")
    }
    touched = trigger.map { "the trigger \($0.name.quotedForMessage) may write it" }
  }

  private var table: PostgresTable { plan.table }
  private var key: [String] { plan.key.columns.map { PostgresName.quoted($0.name) } }

  private var isDeletion: Bool {
    if case .change(let change) = plan.work { !change.isUpdate } else { false }
  }

  private func isOfKey(_ column: PostgresColumn) -> Bool {
    plan.key.columns.contains { $0.name == column.name }
  }

  // MARK: The selected rows

  /// Keeps the keys of the list with their outcomes.
  private func keep(_ list: PackedIdentifiers, _ outcomes: RowOutcomes) throws(BatchError) {
    try session.execute(
      "CREATE TEMPORARY TABLE \(Self.rows) ON COMMIT DROP AS SELECT \(key.joined(separator: ", ")),"
        + " 0::pg_catalog.int2 AS \(Self.outcome) FROM \(table.sql) WITH NO DATA"
    )
    for outcome in RowOutcome.allCases {
      for positions in try outcomes.positions(outcome).ranges {
        for first in stride(from: positions.lowerBound, to: positions.upperBound, by: Self.together)
        {
          let part = first..<min(first + Self.together, positions.upperBound)
          try insert(RowKeys(list, part, key: plan.key), outcome)
        }
      }
    }
    try session.execute("ANALYZE \(Self.rows)")
  }

  private static let together = 16_384

  private func insert(_ keys: RowKeys, _ outcome: RowOutcome) throws(BatchError) {
    let (relation, _) = try keys.relation(in: table, after: 0)
    let values = plan.key.columns.enumerated().map { index, column in
      "\(RowKeys.column(index))::\(column.type)"
    }
    try session.execute(
      "INSERT INTO \(Self.rows) SELECT \(values.joined(separator: ", ")), \(outcome.rawValue)"
        + " FROM \(relation.sql)",
      relation.values
    )
  }

  // MARK: The comparison

  /// Compares in the caller's transaction, which must have one snapshot.
  fileprivate func compare(
    _ list: PackedIdentifiers,
    _ outcomes: RowOutcomes,
    showing limit: Int,
    _ verification: Verification
  ) throws(BatchError) -> Verification {
    let columns = columns(plan.query.parameters)
    try keep(list, outcomes)
    try compare(columns, plan.query.parameters)
    var verification = verification
    try describe(&verification, columns, of: outcomes.done.outcomes, showing: limit)
    return verification
  }

  private func own(_ column: String) -> String { "n.\(PostgresName.quoted(column))" }
  private func former(_ column: String) -> String { "f.\(PostgresName.quoted(column))" }

  private func differs(_ value: String, _ other: String, as type: String) -> String {
    "NOT pg_catalog.record_image_eq(ROW(\(value)::\(type)), ROW(\(other)::\(type)))"
  }

  /// An expression over the row in the copy; evaluated only where it is needed, since it may fail for
  /// other rows.
  private func value(_ expression: CheckedExpression, parameters: PostgresParameters) -> String {
    let row = table.columns.map { "\(former($0.name)) AS \(PostgresName.quoted($0.name))" }
    return
      "(SELECT \(expression.sql(parameters, .place)) FROM (SELECT \(row.joined(separator: ", ")))"
      + " AS \(PostgresName.quoted(table.name)))"
  }

  private struct Column {
    let name: String
    /// Whether the value is another than it should be.
    let differs: String
    /// The value that it should have.
    let expected: String
    /// Whether it differs in a row that the run set, and this is not checked; nil if it is.
    let isUnchecked: String?
    let because: String
  }

  private func columns(_ parameters: PostgresParameters) -> [Column] {
    let isSet = "d.\(Self.outcome) = \(RowOutcome.succeeded.rawValue)"
    // Keys that are equal may still differ: 1.0 and 1.00.
    return table.columns.map { column in
      let type = column.comparedType
      let other = differs(own(column.name), former(column.name), as: type)
      let name = column.name
      if allowed.contains(name) {
        return Column(
          name: name,
          differs: "false",
          expected: former(name),
          isUnchecked: other,
          because: UncheckedPart.allowed
        )
      }
      let setting = settings.first { $0.column.name == name }
      if let setting, setting.obstacle == nil, let value = setting.value {
        // The cast to the declared type pads, as an assignment does.
        let new = "\(self.value(value, parameters: parameters))::\(type)::\(column.type)"
        return Column(
          name: name,
          differs:
            "CASE WHEN \(isSet) THEN \(differs(own(name), new, as: type)) ELSE \(other) END",
          expected: "CASE WHEN \(isSet) THEN \(new)::\(type) ELSE \(former(name))::\(type) END",
          isUnchecked: nil,
          because: ""
        )
      }
      let obstacle =
        setting?.obstacle ?? (column.isGenerated ? "the server computes it" : touched)
      guard let obstacle, !isDeletion, !isOfKey(column) else {
        return Column(
          name: name,
          differs: other,
          expected: former(name),
          isUnchecked: nil,
          because: ""
        )
      }
      return Column(
        name: name,
        differs: "CASE WHEN \(isSet) THEN false ELSE \(other) END",
        expected: former(name),
        isUnchecked: "\(isSet) AND \(other)",
        because: obstacle
      )
    }
  }

  /// What a row is found to be, beside the kinds of differences.
  private enum Found: String {
    case deleted
    /// It had vanished before its turn came.
    case vanished
    /// Only columns that are not checked differ.
    case unchecked
  }

  private func kind(_ columns: [Column], _ matching: String?) -> String {
    func isOf(_ outcome: RowOutcome) -> String { "d.\(Self.outcome) = \(outcome.rawValue)" }
    let changed = columns.map { "(\($0.differs)) IS TRUE" }
    let unchecked = columns.compactMap(\.isUnchecked).map { "(\($0)) IS TRUE" }
    var cases: [String] = []
    if isDeletion {
      cases += [
        "\(isOf(.succeeded)) AND n.is_there THEN 'outcome'",
        "\(isOf(.succeeded)) AND f.is_there THEN '\(Found.deleted)'",
      ]
    }
    cases += [
      "\(isOf(.vanished)) AND n.is_there THEN 'outcome'",
      "\(isOf(.vanished)) THEN '\(Found.vanished)'",
    ]
    if !changed.isEmpty {
      cases.append(
        "n.is_there AND f.is_there AND (\(changed.joined(separator: " OR "))) THEN 'changed'"
      )
    }
    if let matching {
      cases.append("\(isOf(.noLongerMatching)) AND n.is_there AND \(matching) THEN 'outcome'")
    }
    if !unchecked.isEmpty {
      cases.append(
        "n.is_there AND f.is_there AND (\(unchecked.joined(separator: " OR "))) THEN '\(Found.unchecked)'"
      )
    }
    cases += [
      "n.is_there AND f.is_there THEN NULL", "n.is_there THEN 'added'", "f.is_there THEN 'removed'",
    ]
    // A row that is only in the list.
    return "CASE \(cases.map { "WHEN \($0)" }.joined(separator: " ")) ELSE 'outcome' END"
  }

  /// Compares, and keeps the rows that differ.
  private func compare(_ columns: [Column], _ parameters: PostgresParameters) throws(BatchError) {
    func keys(_ side: String) -> [String] { key.map { "\(side).\($0)" } }
    func equal(_ side: String, _ other: [String]) -> String {
      zip(keys(side), other).map { "\($0) = \($1)" }.joined(separator: " AND ")
    }
    let either = zip(keys("n"), keys("f")).map { "coalesce(\($0), \($1))" }
    var matching: String?
    if let predicate = plan.recheck.predicate, predicate.obstacle == nil {
      let row = table.columns.map { "\(own($0.name)) AS \(PostgresName.quoted($0.name))" }
      matching =
        "(SELECT \(predicate.sql(parameters, .place)) FROM (SELECT \(row.joined(separator: ", "))) AS"
        + " \(PostgresName.quoted(table.name))) IS TRUE"
    }
    let all = table.columns.map { PostgresName.quoted($0.name) }.joined(separator: ", ")
    func text(_ value: String) -> String { "pg_catalog.left((\(value))::pg_catalog.text, 200)" }
    let shown = columns.flatMap { column in
      [
        "(\(column.differs)) IS TRUE",
        "CASE WHEN \(column.differs) THEN \(text(column.expected)) END",
        "CASE WHEN \(column.differs) THEN \(text(own(column.name))) END",
        column.isUnchecked.map { "(\($0)) IS TRUE" } ?? "false",
      ]
    }
    let names = columns.indices.flatMap {
      ["differs_\($0)", "file_\($0)", "own_\($0)", "unchecked_\($0)"]
    }
    let keyed = zip(either, keys("d")).map { "coalesce(\($0), \($1))" }
    let selected =
      zip(keyed, key).map { "\($0) AS \($1)" }
      + [
        "\(kind(columns, matching)) AS kind", "d.\(Self.outcome) AS outcome",
        "n.is_there AS has_row",
      ]
      + zip(shown, names).map { "\($0) AS \($1)" }
    try session.execute(
      """
      CREATE TEMPORARY TABLE \(Self.found) ON COMMIT DROP AS SELECT * FROM (
        SELECT \(selected.joined(separator: ", "))
        FROM (SELECT \(all), true AS is_there FROM \(table.sql)) AS n
          FULL JOIN (SELECT \(all), true AS is_there FROM \(copy.sql)) AS f ON \(equal("n", keys("f")))
          FULL JOIN \(Self.rows) AS d ON \(equal("d", either))) AS compared
      WHERE kind IS NOT NULL
      """,
      parameters.values
    )
  }

  // MARK: The result

  /// Fills in what was found.
  private func describe(
    _ verification: inout Verification,
    _ columns: [Column],
    of outcomes: Outcomes,
    showing limit: Int
  ) throws(BatchError) {
    let title = table.title
    let kinds = try session.execute(
      "SELECT kind, count(*), count(*) FILTER (WHERE outcome = \(RowOutcome.succeeded.rawValue)),"
        + " count(*) FILTER (WHERE has_row IS NULL) FROM \(Self.found) GROUP BY kind"
    )
    var counts: [StoreDifference.Kind: Int] = [:]
    var (deleted, wrong, gone) = (0, 0, 0)
    for row in 0..<kinds.count {
      let count = Int(kinds.integer(row, 1) ?? 0)
      gone += Int(kinds.integer(row, 3) ?? 0)
      switch kinds.text(row, 0) {
      case Found.deleted.rawValue: deleted = count
      case Found.vanished.rawValue, Found.unchecked.rawValue: break
      case let name:
        guard let kind = name.flatMap(StoreDifference.Kind.init) else { continue }
        counts[kind] = count
        wrong += Int(kinds.integer(row, 2) ?? 0)
      }
    }
    let total = try session.integer("SELECT count(*) FROM \(table.sql)") ?? 0
    verification.tables = 1
    verification.rows = Int(total) + gone
    verification.changed = counts[.changed, default: 0]
    verification.added = counts[.added, default: 0]
    verification.removed = counts[.removed, default: 0]
    verification.outcome = counts[.outcome, default: 0]
    verification.deletedAsDeclared = deleted
    if !isDeletion { verification.changedAsDeclared = outcomes.succeeded - wrong }
    verification.computedColumns = settings.filter { $0.obstacle == nil }
      .map { "\(title).\($0.column.name)" }
    let sums = columns.indices.flatMap {
      [
        "count(*) FILTER (WHERE differs_\($0) AND kind = 'changed')",
        // A row that only one side has differs in all of its columns.
        "count(*) FILTER (WHERE unchecked_\($0) AND kind IN ('changed', 'outcome', '\(Found.unchecked.rawValue)'))",
      ]
    }
    if !sums.isEmpty {
      let found = try session.execute("SELECT \(sums.joined(separator: ", ")) FROM \(Self.found)")
      func count(_ column: Int) -> Int { Int(found.integer(0, column) ?? 0) }
      let wrong = columns.indices.map {
        TableDifferences.Column(name: columns[$0].name, rows: count(2 * $0))
      }
      verification.byTable = [TableDifferences(title, counts, wrong.filter { $0.rows > 0 })]
        .compactMap(\.self)
      for (index, column) in columns.enumerated() {
        let rows = count(2 * index + 1)
        let isSet = settings.contains { $0.column.name == column.name }
        guard column.isUnchecked != nil, rows > 0 || isSet else { continue }
        verification.unchecked.append(
          UncheckedPart(title, column.name, because: column.because, rows: rows)
        )
      }
    } else {
      verification.byTable = [TableDifferences(title, counts, [])].compactMap(\.self)
    }
    verification.differences = try differences(columns, limit)
    verification.notes = [
      "only the rows of the job's table were compared, with \(copy.title.quotedForMessage)"
    ]
  }

  private func differences(
    _ columns: [Column],
    _ limit: Int
  ) throws(BatchError) -> [StoreDifference] {
    let keys = key.map { "\($0)::pg_catalog.text" }
    let values = columns.indices.flatMap { ["differs_\($0)", "file_\($0)", "own_\($0)"] }
    let rows = try session.execute(
      "SELECT \((["kind", "outcome"] + keys + values).joined(separator: ", ")) FROM \(Self.found)"
        + " WHERE kind = ANY ($1) ORDER BY \(key.joined(separator: ", ")) LIMIT \(limit)",
      [.array(PostgresArray(StoreDifference.Kind.allCases.map(\.rawValue)))]
    )
    return (0..<rows.count).map { row in
      let kind = rows.text(row, 0).flatMap(StoreDifference.Kind.init) ?? .changed
      let named = plan.key.columns.enumerated().map { index, column in
        StoreDifference.Key(name: column.name, value: rows.text(row, 2 + index) ?? "NULL")
      }
      guard kind != .outcome else {
        let outcome = rows.integer(row, 1).flatMap { RowOutcome(rawValue: UInt8($0)) }
        let detail = "its run recorded it as \(outcome.map { "\($0)" } ?? "selected")"
        return StoreDifference(kind, table.title, key: named, detail: detail)
      }
      var differing: [StoreDifference.Column] = []
      let first = 2 + keys.count
      for (index, column) in columns.enumerated() where kind == .changed {
        let place = first + 3 * index
        guard rows.isTrue(row, place), differing.count < StoreDifference.columnLimit else {
          continue
        }
        differing.append(
          .init(
            name: column.name,
            file: rows.text(row, place + 1) ?? "NULL",
            database: rows.text(row, place + 2) ?? "NULL"
          )
        )
      }
      return StoreDifference(kind, table.title, key: named, columns: differing)
    }
  }
}

extension Verification {
  /// Compares the table of a job with a copy of it in the same database.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - name: The copy.
  ///   - run: The run; nil for the last one.
  ///   - texts: The values of parameters that are not recorded, as `name=value`.
  ///   - parts: The columns that may differ, as `table.column`.
  ///   - limit: The number of differences to keep.
  ///   - session: The session, in no transaction.
  /// - Throws: `BatchError` of code `otherStore` if the table is not a copy, `alreadyRunning` if the
  ///   run is alive, `otherRun` if the job is no longer that of the run.
  package init(
    of job: Job,
    againstTable name: String,
    run: String?,
    _ texts: [String],
    allowing parts: [String],
    limit: Int,
    in session: PostgresSession
  ) throws(BatchError) {
    if !job.action.selectsRows {
      throw .notForLoads("batch verify --against", at: job.place(of: JobPath("action")))
    }
    let tables = try RunTables(of: session)
    let run = try job.sharedRun(run, tables, in: session)
    let place = session.address.description
    try tables.refuseIfAlive(run, of: job, in: session)
    let metadata = try run.described()
    let parameters = try metadata.parameters(of: job, given: texts)
    try metadata.refuse(unless: job, parameters, at: place)
    let plan = try PostgresPlan(job, parameters: parameters, in: session)
    let copy = try session.transaction(TransactionOptions(isReadOnly: true)) {
      () throws(BatchError) in
      try PostgresTable(named: name, in: session)
    }
    try plan.table.refuse(unlessCopy: copy)
    try copy.refuse(unlessUnique: plan.key, in: session)
    let allowed = try plan.table.columns(allowed: parts)
    let list = try tables.list(ofRun: run.run, in: session).packed
    guard list.count == run.total else {
      throw BatchError.identifiersGone(ofRun: run.run, at: place)
    }
    let outcomes = try tables.rowOutcomes(ofRun: run.run, in: session)
    let counts = outcomes.done.outcomes
    self.init(
      of: [.init(job: job.name, run: run.run, outcomes: counts)],
      database: place,
      file: copy.title
    )
    let comparison = try PostgresVerification(plan, copy, allowing: allowed, in: session)
    let options = TransactionOptions(.repeatableRead, searchPath: plan.query.path)
    self = try session.transaction(options) { [self] () throws(BatchError) in
      try comparison.compare(list, outcomes, showing: limit, self)
    }
    let undo = try tables.completedUndo(of: run.run, by: job.undoing.name, in: session)
    if let undo { notes.append("run \(run.run) was undone by run \(undo.run)") }
  }
}

extension PostgresTable {
  /// Refuses a copy in which a key occurs twice.
  fileprivate func refuse(
    unlessUnique key: PostgresKey,
    in session: PostgresSession
  ) throws(BatchError) {
    let names = PostgresName.list(key.columns.map(\.name))
    let found = try session.execute(
      "SELECT FROM \(sql) GROUP BY \(names) HAVING count(*) > 1 LIMIT 1"
    )
    guard found.count > 0 else { return }
    throw BatchError(
      .otherStore,
      "a key occurs twice in \(title.quotedForMessage)",
      remedy: "name a copy with each row once"
    )
  }

  fileprivate func refuse(unlessCopy copy: PostgresTable) throws(BatchError) {
    func refusal(_ reason: String) -> BatchError {
      BatchError(
        .otherStore,
        "\(copy.title.quotedForMessage) is not a copy of \(title.quotedForMessage): \(reason)",
        remedy: "make one before the run: CREATE TABLE copy AS TABLE \(sql)"
      )
    }
    if copy.oid == oid { throw refusal("it is the table itself") }
    for column in columns {
      guard let own = copy.columns.first(where: { $0.name == column.name }) else {
        throw refusal("it has no column \(column.name.quotedForMessage)")
      }
      guard own.type == column.type else {
        throw refusal(
          "\(column.name.quotedForMessage) is \(own.type) there, and not \(column.type)"
        )
      }
    }
  }

  /// The columns that a person allows to differ, as `table.column`.
  fileprivate func columns(allowed parts: [String]) throws(BatchError) -> Set<String> {
    var names: Set<String> = []
    for part in parts {
      guard
        let column = [title, name].lazy.compactMap({ table in
          part.hasPrefix("\(table).") ? String(part.dropFirst(table.count + 1)) : nil
        }).first
      else {
        throw BatchError(
          .invalidJob,
          "\(part.quotedForMessage) is no column of \(title.quotedForMessage)",
          remedy: "write \(title).COLUMN"
        )
      }
      names.insert(try requireColumn(named: column).name)
    }
    return names
  }
}

extension CheckedExpression {
  /// Why the value cannot be computed again, in a clause; nil if it can.
  fileprivate var obstacle: String? {
    if !isAboutRow { return "its value depends on more than the row" }
    return dependsOnTime ? "its value depends on the time" : nil
  }
}

extension RunTables {
  /// Refuses to look at the rows of a run that is changing them.
  package func refuseIfAlive(
    _ run: TableRun,
    of job: Job,
    in session: PostgresSession
  ) throws(BatchError) {
    guard run.state == .running else { return }
    let host = try hosts(ofRun: run.run, in: session).first {
      $0.isAlive(within: job.database.lease)
    }
    guard let host else { return }
    throw BatchError(
      .alreadyRunning,
      "the run is alive (process \(host.process) on \(host.name)), and changes rows meanwhile",
      at: session.address.description,
      remedy: "wait for its end"
    )
  }
}
#endif
