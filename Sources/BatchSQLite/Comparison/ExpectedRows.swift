import BatchIdentifiers
import BatchRuns

/// The rows that runs have done, as they should be now, in a temporary table of a comparing
/// connection.
///
/// The table has the name, the collations and the types of the compared one, so that expressions
/// mean the same and SQLite itself converts what they give. It has the rows of one part at a time.
/// The values of the first run are computed over the rows of the other file, those of each later
/// run over what the earlier ones should have left.
struct ExpectedRows: Sendable {
  /// How a row should be, as the table says it.
  enum State: Int {
    case present
    case deleted
    /// Recorded as gone when its turn came.
    case vanished
    /// There, but not as the run's record of it says.
    case contradicted
  }

  /// The number of rows in one part.
  struct Counts {
    var set = 0
    var deleted = 0
    /// The rows of the other file that the runs have found; a row counts for each run.
    var found = 0
  }

  static let state = "_batch_state"
  /// A bit for each run that has set the row.
  static let setters = "_batch_setters"

  private static let first = "_batch_first"
  private static let last = "_batch_last"

  let runs: [(number: Int, change: ExpectedChanges)]
  /// The columns that are checked by the values here.
  let checked: Set<String>
  /// The columns that some run has set to a value that cannot be computed, the bits of these runs,
  /// and why.
  let unchecked: [(column: String, setters: Int64, because: String)]

  private let table: ComparedTable
  private let columns: [String]

  /// Resolves what the runs made of a table, and creates the temporary table; nil if no run has
  /// changed rows of it.
  init?(
    of table: ComparedTable,
    after all: [ExpectedChanges],
    in connection: Connection
  ) throws(BatchError) {
    var runs = all.enumerated().filter { SQLName.equal($0.element.table, table.name) }
      .map { (number: $0.offset, change: $0.element) }
    guard !runs.isEmpty else { return nil }
    self.table = table
    let stored = table.columns.filter { !table.generatedColumns.contains($0) }
    // A later run may read any column.
    let set = Set(runs.flatMap { $0.change.settings.map(\.column) })
    columns = (runs.count > 1 ? stored : stored.filter(set.contains)).filter {
      !table.keyColumns.contains($0)
    }
    try Self.create(table, columns, of: runs[0].change.entity, in: connection)
    var unchecked: [(column: String, setters: Int64, because: String)] = []
    var checked: Set<String> = []
    for index in runs.indices {
      let run = runs[index]
      let source = Self.source(table, isFirst: index == 0)
      func isComputable(_ value: SQLExpression) throws(BatchError) -> String? {
        do throws(BatchError) {
          _ = try connection.prepare("SELECT \(value.sql) FROM \(source)")
          return nil
        } catch {
          guard error.code == .invalidSQL else { throw error }
          return error.message
        }
      }
      let unknown = unchecked.map(\.column)
      if let value = run.change.unchanged, try isComputable(value) != nil || !unknown.isEmpty {
        runs[index].change.unchanged = nil
      }
      if let value = run.change.matching, try isComputable(value) != nil || !unknown.isEmpty {
        runs[index].change.matching = nil
      }
      var settings = run.change.settings
      for place in settings.indices where columns.contains(settings[place].column) {
        let setting = settings[place]
        if setting.obstacle == nil {
          if let other = setting.reads.sorted().first(where: unknown.contains) {
            settings[place].obstacle = "it depends on \(other), which an earlier run set"
          } else {
            settings[place].obstacle = try isComputable(setting.value)
          }
        }
        if let obstacle = settings[place].obstacle {
          unchecked.append((setting.column, 1 << Int64(index), obstacle))
        } else {
          checked.insert(setting.column)
        }
      }
      if !run.change.isDeletion { runs[index].change.action = .update(settings) }
      for touch in run.change.touches where stored.contains(touch.column) {
        unchecked.append((touch.column, 1 << Int64(index), touch.because))
      }
      if run.change.isDeletion { continue }
      for name in table.generatedColumns {
        unchecked.append((name, 1 << Int64(index), "SQLite computes it from the row"))
      }
    }
    self.runs = runs
    self.checked = checked
    self.unchecked = unchecked
  }

  // MARK: The table

  func create(in connection: Connection) throws(BatchError) {
    try Self.create(table, columns, of: runs[0].change.entity, in: connection)
  }

  private static func create(
    _ table: ComparedTable,
    _ columns: [String],
    of entity: Entity,
    in connection: Connection
  ) throws(BatchError) {
    func definition(_ column: String) -> String {
      let attribute = entity.attributes.first { $0.column == column }
      let collation = connection.collation(ofColumn: column, of: table.name) ?? "BINARY"
      return "\(SQLName.quoted(column)) \(attribute?.affinity ?? "")"
        + " COLLATE \(SQLName.quoted(collation))"
    }
    var definitions: [String] = []
    var end = ""
    switch table.key {
    case .rowID(let name, isColumn: true):
      definitions.append("\(SQLName.quoted(name)) INTEGER PRIMARY KEY")
    case .rowID: break
    case .columns(let names):
      definitions += names.map(definition)
      end = ", PRIMARY KEY (\(SQLName.list(names)))) WITHOUT ROWID"
    }
    definitions += columns.map(definition) + ["\(state) INTEGER", "\(setters) INTEGER"]
    let name = "temp.\(SQLName.quoted(table.name))"
    try connection.execute("DROP TABLE IF EXISTS \(name)")
    try connection.execute(
      "CREATE TABLE \(name) (\(definitions.joined(separator: ", "))\(end.isEmpty ? ")" : end)"
    )
  }

  /// What the expressions of a run are computed over, under the name of the table.
  private static func source(_ table: ComparedTable, isFirst: Bool) -> String {
    let name = SQLName.quoted(table.name)
    if !isFirst { return "temp.\(name)" }
    let copy = SQLName.quoted(table.nameInFile ?? table.name)
    return "\(SQLName.quoted(DatabaseName.file.rawValue)).\(copy) AS \(name)"
  }

  /// The SQL of what a run has recorded of the row of an alias.
  func outcome(_ index: Int, of alias: String) -> String {
    RowComparison.ask(
      .outcome,
      ofRun: runs[index].number,
      key: runs[index].change.key.map { "\(alias).\(SQLName.quoted($0))" }
    )
  }

  // MARK: Filling it

  /// Replaces the rows by those of another part, given by its rowids; nil for all rows.
  func fill(
    with part: ClosedRange<Int64>?,
    in connection: Connection
  ) throws(BatchError) -> Counts {
    let name = "temp.\(SQLName.quoted(table.name))"
    try connection.execute("DELETE FROM \(name)")
    for index in runs.indices {
      let statement = try connection.prepare(index == 0 ? insertion : update(index))
      var values = runs[index].change.parameters
      // Numbered parameters would share their numbers with those of the expressions.
      if index == 0, let part {
        values[Self.first] = .integer(part.lowerBound)
        values[Self.last] = .integer(part.upperBound)
      }
      for (name, value) in values {
        if let index = statement.parameterIndex(":" + name) { try statement.bind(value, at: index) }
      }
      try statement.run()
    }
    let found =
      runs.count == 1
      ? "\(Self.state) <> \(State.vanished.rawValue)"
      : runs.indices.map { isFound($0, in: SQLName.quoted(table.name)) }.joined(separator: " + ")
    let counts = try connection.prepare(
      """
      SELECT ifnull(sum(\(Self.state) = \(State.present.rawValue) AND \(Self.setters) <> 0), 0),
        ifnull(sum(\(Self.state) = \(State.deleted.rawValue)), 0), ifnull(sum(\(found)), 0)
      FROM \(name)
      """
    )
    guard try counts.step() else { return Counts() }
    return Counts(
      set: Int(counts.integer(at: 0)),
      deleted: Int(counts.integer(at: 1)),
      found: Int(counts.integer(at: 2))
    )
  }

  /// Whether a run has found the row of an alias when its turn came; 1 or 0.
  private func isFound(_ index: Int, in alias: String) -> String {
    "(\(outcome(index, of: alias)) NOT IN (0, \(RowOutcome.vanished.rawValue)))"
  }

  /// The number of runs that have found the row of an alias.
  func finders(of alias: String) -> String {
    "(\(runs.indices.map { isFound($0, in: alias) }.joined(separator: " + ")))"
  }

  private var insertion: String {
    let name = SQLName.quoted(table.name)
    let keys = table.keyColumns.map { "\(name).\(SQLName.quoted($0))" }
    let values = keys + columns.map { value(of: $0, after: 0) } + [state(after: 0), setters(0)]
    let isDone = runs.indices.map { outcome($0, of: name) }.joined(separator: " OR ")
    let isInPart = table.hasRowID ? "\(keys[0]) BETWEEN :\(Self.first) AND :\(Self.last) AND " : ""
    return """
      INSERT INTO temp.\(name)
        (\(SQLName.list(table.keyColumns + columns + [Self.state, Self.setters])))
      SELECT \(values.joined(separator: ", ")) FROM \(Self.source(table, isFirst: true))
      WHERE \(isInPart)(\(isDone))
      """
  }

  private func update(_ index: Int) -> String {
    let name = SQLName.quoted(table.name)
    let set =
      columns.map { "\(SQLName.quoted($0)) = \(value(of: $0, after: index))" }
      + ["\(Self.state) = \(state(after: index))", "\(Self.setters) = \(setters(index))"]
    return """
      UPDATE temp.\(name) SET \(set.joined(separator: ", ")) WHERE \(outcome(index, of: name))
      """
  }

  /// Whether a run alone decides about all rows here, since it has done them and none has failed.
  private var isPlain: Bool { runs.count == 1 && runs[0].change.rows.haveAllSucceeded }

  private func value(of column: String, after index: Int) -> String {
    let name = SQLName.quoted(table.name)
    let old = "\(name).\(SQLName.quoted(column))"
    let setting = runs[index].change.settings.first { $0.column == column && $0.obstacle == nil }
    guard let setting else { return old }
    return isPlain
      ? setting.value.sql : choice(index, .succeeded, setting.value.sql, otherwise: old)
  }

  private func choice(
    _ index: Int,
    _ outcome: RowOutcome,
    _ value: String,
    otherwise: String
  ) -> String {
    let recorded = self.outcome(index, of: SQLName.quoted(table.name))
    return "CASE \(recorded) WHEN \(outcome.rawValue) THEN \(value) ELSE \(otherwise) END"
  }

  private func state(after index: Int) -> String {
    let run = runs[index].change
    let done = (run.isDeletion ? State.deleted : .present).rawValue
    if isPlain { return "\(done)" }
    let before = index == 0 ? "\(State.present.rawValue)" : Self.state
    let contradicted = State.contradicted.rawValue
    let unchanged = run.unchanged.map { "iif(\($0.sql) IS TRUE, \(before), \(contradicted))" }
    let matching = run.matching.map { "iif(\($0.sql) IS TRUE, \(contradicted), \(before))" }
    return """
      CASE \(outcome(index, of: SQLName.quoted(table.name)))
        WHEN \(RowOutcome.succeeded.rawValue) THEN \(done)
        WHEN \(RowOutcome.vanished.rawValue) THEN \(State.vanished.rawValue)
        WHEN \(RowOutcome.unchanged.rawValue) THEN \(unchanged ?? before)
        WHEN \(RowOutcome.noLongerMatching.rawValue) THEN \(matching ?? before)
        ELSE \(before) END
      """
  }

  private func setters(_ index: Int) -> String {
    let before = index == 0 ? "0" : Self.setters
    if runs[index].change.isDeletion { return before }
    if isPlain { return "1" }
    return choice(index, .succeeded, "\(before) | \(1 << Int64(index))", otherwise: before)
  }
}

extension Attribute {
  /// A type that makes a column store values as this one does, also those that a STRICT table would
  /// refuse.
  fileprivate var affinity: String {
    let kept = keptClasses
    if kept.contains([.text, .integer]) { return "" }
    if kept.contains(.text) { return "TEXT" }
    return kept.contains(.real) ? "REAL" : "NUMERIC"
  }
}
