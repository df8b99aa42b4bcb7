package import BatchIdentifiers
package import BatchJobs
import BatchRuns

extension ExpectedChanges {
  /// What a run of a job made of the rows of its list, and what others may have written beside it;
  /// nil if the job changes nothing.
  package static func changes(
    of job: Job,
    _ parameters: ParameterValues,
    rows: SelectedRows,
    in store: Store,
    _ connection: Connection
  ) throws(BatchError) -> (changes: ExpectedChanges, unchecked: [UncheckedPart])? {
    guard job.action.writes else { return nil }
    let entity = try store.schema.entity(named: job.source.entity)
    let written = try WrittenEntity(entity, in: store)
    let key =
      if let names = job.source.key { try entity.declaredKey(names) } else {
        try entity.requireKey()
      }
    let values = parameters.sqlValues
    let assignments = try job.assignments(of: entity, written)
    let effects = try SideEffects(
      of: BulkChange(
        entity: written.entity,
        key: key,
        // Triggers fire by the columns, whatever the values.
        action: job.action.kind == .delete
          ? .delete(archive: nil)
          : .update(assignments.map { ($0.column, SQLExpression(SQLName.quoted($0.column))) }),
        predicate: nil,
        recheck: .off,
        parameters: [:]
      ),
      archive: job.archive,
      enforcesForeignKeys: job.database.foreignKeys,
      in: connection
    )
    let judge = ValueJudge(written.entity, values, effects, in: connection)
    var action = Action.update([])
    var unchanged: SQLExpression?
    switch job.action {
    case .delete(let delete):
      action = .delete(
        archive: try delete.archive.map { name throws(BatchError) in
          try Archive(
            store.schema.entity(named: name),
            of: written.entity,
            isCreated: delete.createsArchive
          )
        }
      )
    case .update(let update):
      let settings = try assignments.map { column, value throws(BatchError) in
        try judge.setting(column, to: value)
      }
      action = .update(settings)
      if update.unchanged == .skip, settings.allSatisfy({ $0.obstacle == nil }) {
        unchanged = BulkChange.unchanged(assignments, of: written.entity)
      }
    default:
      action = .update(
        assignments.map {
          Setting(
            column: $0.column,
            value: $0.value,
            reads: [],
            obstacle: UncheckedPart.ofProgram
          )
        }
      )
    }
    let compiler = ExpressionCompiler(
      connection: connection,
      entity: entity,
      parameters: values.keys
    )
    let condition = try job.source.where.map { text throws(BatchError) in
      try compiler.condition(SQLExpression(text, at: job.place(of: .where)))
    }
    let rechecked = condition?.applied(by: job.source.recheck).map(written.expression)
    let matching = try rechecked.flatMap { condition throws(BatchError) in
      try judge.obstacle(to: condition).reason == nil ? condition : nil
    }
    let changes = ExpectedChanges(
      entity: written.entity,
      key: key.columns,
      action: action,
      touches: job.action.kind == .delete ? [] : effects.touches,
      rows: rows,
      parameters: values,
      unchanged: unchanged,
      matching: matching
    )
    let own = effects.touches.map {
      UncheckedPart(written.entity.table, $0.column, because: $0.because)
    }
    return (changes, effects.elsewhere + (job.action.kind == .delete ? own : []))
  }
}

extension Job {
  fileprivate var archive: String? {
    if case .delete(let delete) = action { delete.archive } else { nil }
  }

  /// The columns that the job sets, and their values; a transform's are not known.
  fileprivate func assignments(
    of entity: Entity,
    _ written: WrittenEntity
  ) throws(BatchError) -> [(column: String, value: SQLExpression)] {
    var set: [(attribute: Attribute, value: SQLExpression)] = []
    switch action {
    case .update(let update):
      for assignment in update.set {
        set.append(
          (
            try entity.requireAttribute(named: assignment.column),
            SQLExpression(assignment.expression, at: place(of: .set(assignment.column)))
          )
        )
      }
    case .transform(let transform):
      for name in transform.writes {
        set.append((try entity.requireAttribute(named: name), SQLExpression("NULL")))
      }
    case .delete, .export, .load: break
    }
    var assignments: [(column: String, value: SQLExpression)] = []
    for (attribute, value) in set { assignments += written.assignments(of: attribute, to: value) }
    if let version = written.entity.versionColumn, !set.isEmpty,
      !assignments.contains(where: { SQLName.equal($0.column, version) })
    {
      let name = SQLName.quoted(version)
      assignments.append((version, SQLExpression("ifnull(\(name), 0) + 1")))
    }
    return assignments
  }
}

/// What triggers and foreign keys may write in response to a change.
private struct SideEffects {
  /// The columns of the changed table.
  var touches: [ExpectedChanges.Touch] = []
  /// Other tables and their columns, and rows of the changed table.
  var elsewhere: [UncheckedPart] = []

  init(
    of change: BulkChange,
    archive: String?,
    enforcesForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) {
    var written = try change.effects(enforcesForeignKeys: enforcesForeignKeys, in: connection)
    var statements = change.statements
    if let archive {
      let copying = "INSERT INTO \(SQLName.quoted(archive)) DEFAULT VALUES"
      written.formUnion(try connection.accesses(of: copying).writtenByTriggers)
      statements.append(copying)
    }
    let triggers = try connection.triggers(setOffBy: statements)
    for table in written.tables.sorted() {
      let writers = triggers.filter { $0.value.keys.contains { SQLName.equal($0, table) } }
      let names = writers.keys.sorted()
      let because =
        names.isEmpty
        ? "a foreign key may change it"
        : "the trigger\(names.count == 1 ? "" : "s") \(names.joined(separator: ", ")) may write it"
      let isOwn = SQLName.equal(table, change.entity.table)
      if written.containsRows(of: table) {
        elsewhere.append(UncheckedPart(table, because: because))
        if !isOwn { continue }
      }
      let all = try connection.texts("SELECT name FROM pragma_table_xinfo(?)", .text(table))
      let updated = Set(writers.values.flatMap { $0.flatMap(\.value) }.map(SQLName.folded))
      let columns = all.filter {
        updated.contains(SQLName.folded($0))
          || !written.containsRows(of: table) && !written.written(of: [$0], in: table).isEmpty
      }
      for column in columns {
        if isOwn {
          touches.append(.init(column: column, because: because))
        } else {
          elsewhere.append(UncheckedPart(table, column, because: because))
        }
      }
    }
  }
}

/// Whether the value of an expression can be computed again, long after the run.
private struct ValueJudge {
  private let entity: Entity
  private let parameters: [String: SQLValue]
  private let effects: SideEffects
  private let connection: Connection

  init(
    _ entity: Entity,
    _ parameters: [String: SQLValue],
    _ effects: SideEffects,
    in connection: Connection
  ) {
    self.entity = entity
    self.parameters = parameters
    self.effects = effects
    self.connection = connection
  }

  func setting(
    _ column: String,
    to value: SQLExpression
  ) throws(BatchError) -> ExpectedChanges.Setting {
    let (reason, reads) = try obstacle(to: value)
    return .init(column: column, value: value, reads: reads, obstacle: reason)
  }

  /// Why an expression may have another value now, in a clause, and the columns of the row that it
  /// reads.
  func obstacle(to value: SQLExpression) throws(BatchError) -> (reason: String?, reads: Set<String>)
  {
    let compiler = ExpressionCompiler(
      connection: connection,
      entity: entity,
      parameters: parameters.keys
    )
    let accesses: TableAccesses
    let others: Set<String>
    do throws(BatchError) {
      accesses = try connection.accesses(of: "SELECT \(value.sql) FROM \(entity.rowSource)")
      others = Set(accesses.read.keys.filter { !SQLName.equal($0, entity.table) })
        .union(try compiler.readsElsewhere(value).keys).subtracting(["json_each", "json_tree"])
    } catch {
      guard error.sqlite != nil else { throw error }
      return (error.message, [])
    }
    let reads = accesses.read[entity.table] ?? []
    if !others.isEmpty { return ("it reads \(others.sorted().joined(separator: ", "))", reads) }
    let dates: Set = ["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"]
    let clock =
      (try? ExpressionScanner(value.text))?.clock
      ?? (accesses.functions.isDisjoint(with: dates) ? nil : parameters.clock)
    if let clock { return ("it reads the time: \(clock)", reads) }
    if let zone = (try? ExpressionScanner(value.text))?.timeZone {
      return ("it depends on the time zone: \(zone)", reads)
    }
    let known = try connection.texts(
      // The bit of SQLITE_DETERMINISTIC, which no aggregate has; a count is the same in any order.
      "SELECT lower(name) FROM pragma_function_list WHERE flags & 0x800 UNION VALUES ('count')"
    )
    if let call = accesses.functions.subtracting(known).min() {
      return ("it calls \(call), which may give another value each time", reads)
    }
    if let touch = effects.touches.first(where: { touch in
      reads.contains { SQLName.equal($0, touch.column) }
    }) {
      return ("it reads \(touch.column), and \(touch.because)", reads)
    }
    return (nil, reads)
  }
}

extension [String: SQLValue] {
  /// A parameter that stands for the time in date functions.
  fileprivate var clock: String? {
    sorted { $0.key < $1.key }.first { entry in
      if case .text(let text) = entry.value { text.lowercased() == "now" } else { false }
    }.map { ":\($0.key) = 'now'" }
  }
}
