#if PostgreSQL
import SystemPackage
package import BatchJobs
import BatchRuns
package import BatchIdentifiers
import BatchPlatform

extension PostgresPlan {
  /// Reads the data to report what a run would do, except for its first decision; writes nothing.
  package func report(
    chunkSize: Int?,
    in session: PostgresSession
  ) throws(BatchError) -> PlanReport {
    if case .load(let insertion) = work {
      return try report(insertion, chunkSize: chunkSize, in: session)
    }
    let options = TransactionOptions(.repeatableRead, isReadOnly: true, searchPath: query.path)
    var selection = Duration.zero
    var report = try session.transaction(options) { () throws(BatchError) in
      let start = ContinuousClock.now
      let matches = try countMatches(in: session)
      selection = start.duration(to: .now)
      let (size, adapts) = job.chunkSizing(chunkSize)
      var report = PlanReport(
        job: job.name,
        action: job.action.type,
        database: address.description,
        entity: table.title,
        key: key.columns.map(\.name),
        identifiers: identifiers?.path.string,
        matches: matches,
        chunks: (matches + size - 1) / size,
        firstChunk: adapts ? size : nil,
        sql: .init(
          create: newArchive?.statement,
          fetch: query.statementText,
          apply: try statementText()
        ),
        queryPlan: try query.explanation(in: session),
        lookUp: .init(queryPlan: try lookUp(in: session)),
        recheck: rechecking,
        warnings: notes + warnings + warningsAboutIncrement + (try warnings(in: session)),
        columns: previewedColumns
      )
      report.increment = increment.map { ExportedRange($0) }
      (report.server, report.role) = (database.version, database.role)
      (report.locks, report.triggers, report.foreignKeys) = (locks, firingTriggers, metForeignKeys)
      report.afterwards = try Self.afterwards(of: job, table, in: session).map {
        PlanReport.Afterwards(by: "vacuum", bytes: $0, freeBytes: nil, neededBytes: nil)
      }
      report.advice = try advice(for: matches, in: session)
      do throws(BatchError) {
        report.sample = try session.savepoint { () throws(BatchError) in
          try preview(5, in: session).map { sample($0) }
        }
      } catch {
        guard error.isAboutRows else { throw error }
        report.warnings.append("one of the first rows would fail: \(error.message)")
      }
      return report
    }
    if case .export(let export, _) = work {
      report.types = export.types
      report.warnings += try warningsAboutTypes(of: export, in: session)
    }
    let chunks = estimate(of: report, in: session)
    let seconds = chunks?.seconds ?? (report.matches > 0 ? .infinity : 0)
    if table.query != nil, seconds > 20 * (selection / .seconds(1)) + 10 {
      report.warnings.append(
        "looking up rows by \(key.columns.map(\.name).joined(separator: ", ")) takes much longer than to select them:"
          + " no index finds them, or the server computes all rows for each chunk. A larger chunk.size helps"
      )
    }
    let estimate = chunks?.adding(selection / .seconds(1))
    report.tell(job.paced(estimate, matches: report.matches))
    return report
  }

  /// How many rows a plan reads as the types of a Parquet file.
  private static let typedRows = 200

  /// Tells how many of the first rows have a value that its column's type cannot hold.
  private func warningsAboutTypes(
    of export: PostgresExport,
    in session: PostgresSession
  ) throws(BatchError) -> [String] {
    guard export.types != nil else { return [] }
    let reading = TransactionOptions(isReadOnly: true, searchPath: query.path)
    let list = try session.transaction(reading) { () throws(BatchError) in
      if let identifiers { return try identifiers.load().packed }
      return try query.first(Self.typedRows, in: session, store: database.derivedIdentity)
    }
    let keys = try RowKeys(list, 0..<min(Self.typedRows, list.count), key: key)
    let failures = try export.lines(for: keys, onFailure: .skip(upTo: .max), in: session)
      .result.failures.map(\.error).filter { $0.code == .invalidValue }
    return job.warning(aboutTypesOf: failures, among: keys.count).map { [$0] } ?? []
  }

  /// The number of rows, after refusing those that share a key.
  private func countMatches(in session: PostgresSession) throws(BatchError) -> Int {
    do {
      try query.parameters.apply(in: session)
      try query.refuseDuplicates(in: session)
      guard let identifiers else { return try query.count(in: session) }
      return try identifiers.list.distinct().count
    } catch {
      throw query.explained(error)
    }
  }

  func sample(_ row: PreviewedRow, identifier shown: String? = nil) -> PlanReport.Sample {
    var identifier = EncodedKey.Encoder()
    for (text, column) in zip(row.key, key.columns) {
      if let text, column.form == .integer, let value = Int64(text) {
        identifier.append(value)
      } else if let text {
        identifier.append(text: text)
      } else {
        identifier.appendNull()
      }
    }
    let forms = Dictionary(table.columns.map { ($0.name, $0.form) }) { first, _ in first }
    let values = { (texts: [String?]) in
      Dictionary(
        zip(previewedColumns, texts).map { ($0, SQLValue($1, forms[$0] ?? .text)) }
      ) { first, _ in first }
    }
    return PlanReport.Sample(
      identifier: shown ?? PrimaryKey.encoded(identifier.key).description,
      before: values(row.before),
      after: row.after.map(values)
    )
  }
}

extension SQLValue {
  fileprivate init(_ text: String?, _ form: PostgresColumn.Form) {
    guard let text else {
      self = .null
      return
    }
    let value: SQLValue? =
      switch form {
      case .integer: Int64(text).map(Self.integer)
      case .real, .singleReal: Double(text).map(Self.real)
      case .blob: Self.bytes(inHex: text.utf8.dropFirst(2)).map(Self.blob)
      case .boolean, .number, .text: nil
      }
    self = value ?? .text(text)
  }

  private static func bytes(inHex digits: Substring.UTF8View) -> [UInt8]? {
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    var rest = digits
    while let pair = String(rest.prefix(2)), !pair.isEmpty {
      guard let byte = UInt8(pair, radix: 16) else { return nil }
      bytes.append(byte)
      rest = rest.dropFirst(2)
    }
    return bytes
  }
}

extension PostgresPlan {
  /// The statements of a run, without what differs from one run to the next.
  package var statements: [String] {
    var plan = self
    plan.work = work.recording(undo?.renamed("…"))
    let triggers = table.triggers.filter(\.isEnabled).map { "\($0.definition) \($0.function)" }
    return (job.action.selectsRows ? [query.statementText] : [])
      + [try? plan.statementText()].compactMap(\.self) + triggers
  }

  package func statementText() throws(BatchError) -> String {
    switch work {
    case .change(let change), .archiving(let change, _): try change.statementText()
    case .transform(let transform, _, _, _): try transform.statementText()
    case .export(let export, _): try export.statementText()
    case .load(let insertion): insertion.sql
    case .undo(let undo, _): try undo.statementText()
    }
  }

  private func lookUp(in session: PostgresSession) throws(BatchError) -> [String] {
    switch work {
    case .change(let change), .archiving(let change, _): try change.explanation(in: session)
    case .transform(let transform, _, _, _): try transform.explanation(in: session)
    case .export(let export, _): try export.explanation(in: session)
    case .load, .undo: []
    }
  }

  var previewedColumns: [String] {
    switch work {
    case .change(let change), .archiving(let change, _): change.previewedColumns
    case .transform(let transform, _, _, _): transform.reads.map(\.name)
    case .export(let export, _): export.columns
    case .load(let insertion): insertion.columns.map(\.name)
    case .undo: []
    }
  }

  /// The columns that are set, or all columns of a deleted row.
  var changedColumns: [String] {
    switch work {
    case .change(let change), .archiving(let change, _): change.previewedColumns
    case .transform(let transform, _, _, _): transform.writes.map(\.name)
    case .load: previewedColumns
    case .export, .undo: []
    }
  }

  /// The first rows, and what they would become if SQL alone decides that.
  private func preview(
    _ limit: Int,
    in session: PostgresSession
  ) throws(BatchError) -> [PreviewedRow] {
    let query = try shownQuery(limit)
    return switch work {
    case .change(let change), .archiving(let change, _):
      try change.preview(limit, of: query, in: session)
    case .transform(let transform, _, _, _): try transform.preview(limit, of: query, in: session)
    case .export(let export, _): try export.preview(limit, of: query, in: session)
    case .load, .undo: []
    }
  }

  private func shownQuery(_ limit: Int) throws(BatchError) -> PostgresQuery {
    guard let list = identifiers?.list, list.count > 0 else { return query }
    return try query.restricted(to: RowKeys(list, 0..<min(limit, list.count), key: key))
  }

  private var rechecking: PlanReport.Rechecking {
    let all = condition?.expression.text.onOneLine
    let rechecked = recheck.predicate?.expression.text.onOneLine
    // Of an increment, at least the range is.
    let left = rechecked == nil ? all : rechecked == all ? nil : job.source.where?.onOneLine
    let reason =
      job.source.recheck == .off
      ? "recheck is off" : "reads other rows, or gives another value each time"
    return PlanReport.Rechecking(
      mode: job.source.recheck.rawValue,
      terms: rechecked.map { [$0] } ?? [],
      notRechecked: left.map { [.init(term: $0, because: reason)] } ?? []
    )
  }

  private var locks: [String] {
    guard job.action.writes else {
      let rows = table.query == nil ? table.title : "what the query reads"
      return ["ACCESS SHARE on \(rows), which only DDL waits for"]
    }
    let seconds = job.database.busyTimeout / .seconds(1)
    let rows = job.action.kind == .delete || setsKey ? "FOR UPDATE" : "FOR NO KEY UPDATE"
    return [
      "ROW EXCLUSIVE on \(table.title), which only DDL and LOCK TABLE wait for",
      "\(rows) on the rows of a chunk, until it is committed",
      "waits at most \(seconds) s for a lock (database.busyTimeout)",
    ]
  }

  /// The event by which triggers know the change; nil if rows are only read.
  var event: String? {
    guard job.action.writes else { return nil }
    return switch job.action.kind {
    case .delete: "DELETE"
    case .load: "INSERT"
    default: "UPDATE"
    }
  }

  var firingTriggers: [String] {
    guard let event else { return [] }
    let set = Set(changedColumns)
    return table.triggers.filter { trigger in
      trigger.isEnabled && trigger.events.contains(event)
        && (event != "UPDATE" || trigger.columns.isEmpty || !set.isDisjoint(with: trigger.columns))
    }.map {
      "\($0.name), \($0.isForEachRow ? "each row" : "each statement"), calls \($0.function)"
    }
  }

  /// The foreign keys by which the server changes rows of other tables together with those of the
  /// job.
  var cascades: [PostgresTable.ForeignKey] {
    guard let event else { return [] }
    let set = Set(changedColumns)
    return table.referrers.filter { key in
      let action = event == "DELETE" ? key.onDelete : key.onUpdate
      return !["NO ACTION", "RESTRICT"].contains(action)
        && (event == "DELETE" || !set.isDisjoint(with: key.targetColumns))
    }
  }

  /// Whether a column of a key that foreign keys may refer to is set.
  private var setsKey: Bool {
    let set = Set(changedColumns)
    return table.indexes.contains { index in
      index.isUnique && !index.isPartial && index.columns.allSatisfy { $0 != nil }
        && !set.isDisjoint(with: index.columns.compactMap(\.self))
    }
  }

  var metForeignKeys: [String] {
    guard let event else { return [] }
    let set = Set(changedColumns)
    let isDeletion = event == "DELETE"
    let referrers = event == "INSERT" ? [] : table.referrers
    let own = isDeletion ? [] : table.references.filter { !set.isDisjoint(with: $0.columns) }
    let others = referrers.filter { isDeletion || !set.isDisjoint(with: $0.targetColumns) }
    return (own + others).map { key in
      let isOther = others.contains(key)
      let action =
        isDeletion
        ? ", on delete \(key.onDelete.lowercased())"
        : isOther ? ", on update \(key.onUpdate.lowercased())" : ""
      return
        "\(key.name): \(key.table) (\(key.columns.joined(separator: ", "))) to \(key.target)\(action)"
    }
  }

  private func advice(
    for count: Int,
    in session: PostgresSession
  ) throws(BatchError) -> [String] {
    guard let event else { return [] }
    let columns = event == "DELETE" ? nil : changedColumns
    return try ServerAdvice(on: table, setting: columns, count: count, in: session).lines
  }
}
#endif
