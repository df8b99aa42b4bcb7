import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation

/// A database of a random schema, a job over its table `t`, and one undeclared change.
struct VerifiedStore {
  /// The undeclared change.
  enum Plant: CaseIterable {
    case nothing, cell, type, rowMore, rowLess, trigger, schema, cells
    /// A row gets what another outcome would have given it.
    case outcome
  }

  /// A table, as far as the changes have to know it.
  struct Table {
    let name: String
    /// The columns that find a row.
    let key: [String]
    let columns: [String]
    let inserts: [String]
    let definition: String

    /// What tells a row from others in both databases: the rowid, by a name that no column takes.
    var identity: [String] { definition.hasSuffix("WITHOUT ROWID") ? key : ["oid"] }

    /// All columns, also those that SQLite computes and stores.
    var storedColumns: [String] {
      key + columns + (definition.contains(" STORED") ? ["stored"] : [])
    }

    var quoted: String { SQLName.quoted(name) }
  }

  /// The place of a single difference.
  struct Finding {
    var kind: StoreDifference.Kind?
    var table: String?
    var key: [String] = []
    var column: String?
  }

  let directory: TemporaryDirectory
  let path: String
  let copy: String
  let job: Job
  /// A job that runs after it, over the same table; nil for none.
  let next: Job?
  let plant: Plant
  private let tables: [Table]
  /// What the jobs set, in the order in which they run.
  private let sets: [[Job.Assignment]]
  let archive: Table?
  /// What another program does when the rows are selected, and the same in the copy.
  private var interference: [String] = []
  private var copied: [String] = []
  /// All rows after the runs, before the undeclared change.
  private var settled: [String: Rows] = [:]
  /// The keys of the rows in which each run has succeeded.
  private var succeeded: [Set<String>] = []
  private var random: SeededGenerator

  /// The values of rows as SQL writes them, with their types and bytes, by what identifies them.
  typealias Rows = [[String]: [String: String]]

  init(seed: UInt64) throws {
    directory = try TemporaryDirectory()
    path = directory.file("a.db")
    copy = directory.file("b.db")
    random = SeededGenerator(seed: seed)
    plant = Plant.allCases[Int(seed % UInt64(Plant.allCases.count))]
    var tables = [Self.table("t", isSource: true, using: &random)]
    for index in 0..<Int.random(in: 0...3, using: &random) {
      let name = ["u\(index)", "odd \"name\" \(index)", "Ünder_\(index)"].randomElement(
        using: &random
      )
      tables.append(Self.table(name ?? "", isSource: false, using: &random))
    }
    let source = tables[0]
    var statements = tables.map(\.definition) + tables.flatMap(\.inserts)
    statements.append("CREATE TABLE log (a, b)")
    var action = Job.Action.export(.init(file: .init(directory.file("out")), format: .ndjson))
    var sets: [[Job.Assignment]] = []
    var archive: Table?
    switch Int.random(in: 0..<8, using: &random) {
    case 0: break
    case 1, 2: action = .delete(.init())
    case 3, 4:
      let isKeyed = Bool.random(using: &random)
      let made = Self.archive(of: source, isKeyed: isKeyed)
      statements.append(made.definition)
      statements += made.inserts
      archive = made
      action = .delete(.init(archive: made.name))
    default:
      let count = Int.random(in: 0..<3, using: &random) == 0 ? 2 : 1
      for _ in 0..<count { sets.append(Self.set(of: source, using: &random)) }
      let skips = Bool.random(using: &random)
      action = .update(.init(set: sets[0], unchanged: skips ? .skip : .write))
    }
    let isPoisoned = Int.random(in: 0..<3, using: &random) == 0
    if isPoisoned {
      for event in ["UPDATE", "DELETE"] {
        statements.append(
          """
          CREATE TRIGGER poison_\(event) BEFORE \(event) ON t WHEN typeof(old."any") = 'text'
          BEGIN SELECT RAISE(ABORT, 'poison'); END
          """
        )
      }
    }
    if plant == .trigger {
      for event in ["UPDATE", "DELETE"] {
        statements.append(
          """
          CREATE TRIGGER after_\(event) AFTER \(event) ON t
          BEGIN INSERT INTO log VALUES ('\(event)', old.chosen); END
          """
        )
      }
    }
    self.tables = tables
    self.sets = sets
    self.archive = archive
    let (database, folder) = (path, directory)
    func job(_ name: String, _ condition: String, _ action: Job.Action) -> Job {
      Job(
        name: name,
        database: .init(path: .init(database)),
        source: .init(entity: "t", where: condition),
        action: action,
        chunk: .init(size: 7),
        workers: 1,
        skip: .init(limit: 1000),
        checkpoint: .init(path: .init(folder.file("\(name).batch")))
      )
    }
    self.job = job("job", "chosen = 1", action)
    next =
      sets.count > 1
      ? job("next", "length(hex(\"any\")) % 4 < 3", .update(.init(set: sets[1]))) : nil
    try TestDatabase.make("a.db", in: directory, "PRAGMA page_size = 1024")
    let connection = try Connection(path: path)
    try connection.execute("BEGIN")
    for statement in statements { try connection.execute(statement) }
    try connection.execute("COMMIT")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    for statement in ["DELETE FROM t", "UPDATE t SET chosen = 0"]
    where self.job.action.writes && Int.random(in: 0..<3, using: &random) == 0 {
      guard let row = try row(of: source, in: connection), row.isChosen else { continue }
      interference.append("\(statement) WHERE \(row.condition)")
      if statement.hasPrefix("UPDATE") { copied.append("\(statement) WHERE \(row.condition)") }
    }
  }

  /// Runs the jobs beside another program; the copy is made as if after that one's updates.
  mutating func run() async throws {
    let (path, copy) = (path, copy)
    let changes = zip([path, copy], [interference, copied])
    _ = try await BatchRun(job).run { event in
      guard case .started = event else { return }
      for (file, statements) in changes {
        // A trigger may refuse it, in both.
        for statement in statements { try? Connection(path: file).execute(statement) }
      }
    }
    if let next { _ = try await BatchRun(next).run() }
    settled = try rows()
    for job in [job, next].compactMap(\.self) {
      let rows = try await job.identifiers(.succeeded).load()
      succeeded.append(
        Set(
          try (0..<rows.count).map { number in
            try rows.key(at: number).components.map { component in
              switch component {
              case .integer(let value): "\(value)"
              case .text(let text): "'\(text)'"
              default: "?"
              }
            }.joined(separator: ",")
          }
        )
      )
    }
  }

  // MARK: Schemas

  /// Random expressions over the row, each of which gives the same again, and some that do not.
  private static func set(
    of source: Table,
    using random: inout SeededGenerator
  ) -> [Job.Assignment] {
    let free = source.columns.filter { $0 != "chosen" }
    let count = Int.random(in: 1...3, using: &random)
    return free.shuffled(using: &random).prefix(count).map { column in
      let name = SQLName.quoted(source.columns.randomElement(using: &random) ?? "chosen")
      let values = [
        "'new'", "1", "1.0", "NULL", SQLName.quoted(column), "chosen || 'x'", "'1'", "'1.0'",
        "-0.0", "9223372036854775807", "'12345678901234567890'", "x'00ff'", "1e300", "' 7 '",
        "'x' || char(0) || 'y'", name, "\(name) || 'é'", "\(name) + 0", "\(name) * 2.5",
        "CAST(\(name) AS TEXT)", "CAST(\(name) AS INTEGER)", "upper(\(name))", "typeof(\(name))",
        "\(name) = 'a'", "t.\(name)", "(SELECT count(*) FROM json_each(json_array(1, chosen)))",
        "CASE WHEN \(name) IS NULL THEN 'none' ELSE length(\(name)) / 2.0 END", "zeroblob(3)",
        "randomblob(4)", "(SELECT count(*) FROM log)", "strftime('%f', 'now')",
      ]
      return Job.Assignment(column, to: values.randomElement(using: &random) ?? "")
    }
  }

  /// Whether the value of an assignment cannot be computed again.
  private static func isUnknown(_ assignment: Job.Assignment) -> Bool {
    ["random", "FROM log", "'now'"].contains { assignment.expression.contains($0) }
  }

  /// The columns of `t` that each run sets to values which are not checked.
  private var unknown: [Set<String>] {
    var all: Set<String> = []
    return sets.map { set in
      let columns = set.filter { assignment in
        Self.isUnknown(assignment)
          || all.contains { assignment.expression.contains(SQLName.quoted($0)) }
      }.map(\.column)
      all.formUnion(columns)
      return Set(columns + ["stored"])
    }
  }

  private static func value(using random: inout SeededGenerator) -> String {
    let number = Int.random(in: -3...300, using: &random)
    return [
      "NULL", "\(number)", "\(number).0", "\(number).25", "'\(number)'", "x'\(number + 2000)'",
      "''", "x''",
      "-0.0", "9223372036854775807", "1e300", "'é\(number)'", "'e\u{301}'", "'A'", "'a'", "'a '",
      "zeroblob(\(max(number, 0)))", "CAST(x'ff00fe' AS TEXT)", "printf('%.2000c', 'x')",
    ].randomElement(using: &random) ?? ""
  }

  private static func table(
    _ name: String,
    isSource: Bool,
    using random: inout SeededGenerator
  ) -> Table {
    let kinds = ["rowid", "text", "pair", "withoutRowID", "noCase", "descending"]
    let more = isSource ? [] : ["none", "autoincrement", "rowidColumn"]
    let kind = (kinds + more).randomElement(using: &random) ?? ""
    let types = ["", "INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC", "TEXT COLLATE NOCASE"]
    let count =
      Int.random(in: 0..<12, using: &random) == 0 ? 70 : Int.random(in: 1...6, using: &random)
    var columns = ["chosen", "any"]
    var definitions = ["chosen INTEGER", "\"any\""]
    for index in 0..<count {
      let column = ["c\(index)", "sel\"ect \(index)"].randomElement(using: &random) ?? ""
      columns.append(column)
      let type = types.randomElement(using: &random) ?? ""
      definitions.append("\(SQLName.quoted(column)) \(type)")
    }
    if Int.random(in: 0..<3, using: &random) == 0 {
      definitions.append("stored AS (\"any\" || chosen) STORED")
      definitions.append("computed AS (chosen + 1)")
    }
    var key = ["id"]
    var tail = ""
    switch kind {
    case "rowid": definitions.insert("id INTEGER PRIMARY KEY", at: 0)
    case "autoincrement": definitions.insert("id INTEGER PRIMARY KEY AUTOINCREMENT", at: 0)
    case "text": definitions.insert("id TEXT NOT NULL PRIMARY KEY", at: 0)
    case "descending": definitions.insert("id INTEGER NOT NULL PRIMARY KEY DESC", at: 0)
    case "noCase":
      definitions.insert("id TEXT COLLATE NOCASE NOT NULL PRIMARY KEY", at: 0)
      tail = " WITHOUT ROWID"
    case "pair", "withoutRowID":
      key = ["p", "q q"]
      definitions.insert(contentsOf: ["p NOT NULL", "\"q q\" NOT NULL"], at: 0)
      definitions.append("PRIMARY KEY (p, \"q q\")")
      if kind == "withoutRowID" { tail = " WITHOUT ROWID" }
    case "rowidColumn":
      definitions.insert("rowid TEXT", at: 0)
      key = ["oid"]
    default:
      key = ["rowid"]
    }
    let stride = [1, 1, 3, 1_000_000].randomElement(using: &random) ?? 1
    let rows =
      isSource ? Int.random(in: 1...60, using: &random) : Int.random(in: 0...40, using: &random)
    let inserts = (0..<rows).map { row in
      let identity: [String] =
        switch kind {
        case "rowid", "autoincrement", "descending", "none", "rowidColumn": ["\(row * stride - 20)"]
        case "pair", "withoutRowID": ["'k\(row / 3)'", "\(row)"]
        default: ["'k\(row)'"]
        }
      let chosen = "\(Int.random(in: 0...1, using: &random))"
      let values = columns.dropFirst().map { _ in value(using: &random) }
      return """
        INSERT INTO \(SQLName.quoted(name)) (\(SQLName.list(key + columns)))
        VALUES (\((identity + [chosen] + values).joined(separator: ", ")))
        """
    }
    return Table(
      name: name,
      key: key,
      columns: columns,
      inserts: inserts,
      definition:
        "CREATE TABLE \(SQLName.quoted(name)) (\(definitions.joined(separator: ", ")))\(tail)"
    )
  }

  /// A table for copies, whose columns have no types and so convert nothing.
  private static func archive(of source: Table, isKeyed: Bool) -> Table {
    let columns = source.key + source.columns
    let more = isKeyed ? "number INTEGER PRIMARY KEY AUTOINCREMENT, " : ""
    return Table(
      name: "Archive",
      key: isKeyed ? ["number"] : ["rowid"],
      columns: columns,
      inserts: [
        "INSERT INTO Archive (\(SQLName.list(source.key))) SELECT \(SQLName.list(source.key)) FROM t LIMIT 2"
      ],
      definition: "CREATE TABLE Archive (\(more)\(SQLName.list(columns)))"
    )
  }

  // MARK: Changes that nobody has declared

  /// Makes the change; returns where it is.
  mutating func change() throws -> Finding {
    let connection = try Connection(path: path)
    // A trigger would refuse some of the changes, or write more.
    for event in ["UPDATE", "DELETE"] {
      try connection.execute("DROP TRIGGER IF EXISTS poison_\(event)")
      try Connection(path: copy).execute("DROP TRIGGER IF EXISTS poison_\(event)")
    }
    var finding = Finding()
    guard let table = tables.randomElement(using: &random) else { return finding }
    finding.table = table.name
    switch plant {
    case .nothing, .trigger: return Finding()
    case .schema:
      let statement = [
        "CREATE INDEX more ON t (chosen)", "CREATE TABLE more (a)", "CREATE VIEW more AS SELECT 1",
        "ALTER TABLE t ADD COLUMN more DEFAULT 3", "DROP TABLE log",
      ].randomElement(using: &random)
      try connection.execute(statement ?? "")
      finding = Finding(kind: .schema)
    case .rowMore:
      let source = "\(table.quoted) (\(SQLName.list(table.key + ["chosen"])))"
      let values = table.key.map { $0 == "p" ? "'k-'" : "777777777" }.joined(separator: ", ")
      try connection.execute("INSERT INTO \(source) VALUES (\(values), 0)")
      finding.kind = .added
      // It may have got the rowid of a row that was deleted, and has a counter if keys are counted.
      if table.name == "t" || table.definition.contains("AUTOINCREMENT") { finding.kind = nil }
    case .rowLess:
      guard let row = try row(of: table, in: connection) else { return Finding() }
      try connection.execute("DELETE FROM \(table.quoted) WHERE \(row.condition)")
      finding.kind = .removed
      finding.key = row.key
    case .cells:
      finding = Finding(table: nil)
      for _ in 0..<Int.random(in: 1...30, using: &random) {
        guard let table = tables.randomElement(using: &random),
          let row = try row(of: table, in: connection),
          let column = table.columns.filter({ $0 != "chosen" }).randomElement(using: &random)
        else { continue }
        try connection.execute(
          """
          UPDATE \(table.quoted) SET \(SQLName.quoted(column)) = \(Self.value(using: &random))
          WHERE \(row.condition)
          """
        )
      }
    case .outcome:
      finding = Finding(table: "t")
      try connection.execute("ATTACH '\(copy)' AS copy")
      let source = tables[0]
      if let set = sets.last, Bool.random(using: &random) {
        guard let row = try row(of: source, in: connection) else { return Finding() }
        // What the job would set again, also in a row that it left alone.
        let values = set.map { "\(SQLName.quoted($0.column)) = \($0.expression)" }
        try connection.execute(
          "UPDATE t SET \(values.joined(separator: ", ")) WHERE \(row.condition)"
        )
      } else {
        // A row as it was.
        let columns = SQLName.list(source.key + source.columns)
        let number = Int.random(in: 0..<1000, using: &random)
        try connection.execute(
          """
          INSERT OR REPLACE INTO t (\(columns)) SELECT \(columns) FROM copy.t
          ORDER BY \(SQLName.list(source.key))
          LIMIT 1 OFFSET \(number) % (SELECT count(*) FROM copy.t)
          """
        )
      }
    case .cell, .type:
      guard let row = try row(of: table, in: connection),
        let column = table.columns.filter({ $0 != "chosen" }).randomElement(using: &random)
      else { return Finding() }
      let value = "SELECT typeof(\(SQLName.quoted(column))) || quote(\(SQLName.quoted(column)))"
      let query = "\(value) FROM \(table.quoted) WHERE \(row.condition)"
      let before = try connection.value(query)
      let type = [.text("integer1"), .text("real1.0"), .text("text'1'")].contains(before)
      for _ in 0..<100 {
        let literal =
          plant == .type && type
          ? ["1", "1.0", "'1'"].randomElement(using: &random) : Self.value(using: &random)
        let name = SQLName.quoted(column)
        try connection.execute(
          "UPDATE \(table.quoted) SET \(name) = \(literal ?? "") WHERE \(row.condition)"
        )
        if try connection.value(query) != before { break }
      }
      if try connection.value(query) == before { return Finding() }
      finding.kind = .changed
      finding.key = row.key
      finding.column = column
    }
    return finding
  }

  // MARK: Counts

  /// How the rows of a table differ from those that the runs left.
  struct Count: Equatable {
    var rows = 0
    var changed = 0
    var columns: [String: Int] = [:]
  }

  /// What differs now from what the runs have left, by table; without what is not checked.
  func differences() throws -> [String: Count] {
    var counts: [String: Count] = [:]
    for (name, now) in try rows() {
      let before = settled[name] ?? [:]
      var count = Count()
      let columns = (tables + [archive].compactMap(\.self)).first { $0.name == name }?.storedColumns
      for (key, old) in before {
        guard let new = now[key] else {
          count.rows += 1
          continue
        }
        var free: Set<String> = []
        if name == "t" {
          for (done, columns) in zip(succeeded, unknown) where done.contains(old[""] ?? "") {
            free.formUnion(columns)
          }
        }
        let differing = (columns ?? ["seq"]).filter { old[$0] != new[$0] && !free.contains($0) }
        if differing.isEmpty { continue }
        count.rows += 1
        count.changed += 1
        for column in differing { count.columns[column, default: 0] += 1 }
      }
      count.rows += now.keys.count { before[$0] == nil }
      if count.rows > 0, !(name == "log" && plant == .trigger) { counts[name] = count }
    }
    return counts
  }

  /// The values of the rows as SQL writes them, with their types and bytes, by what identifies them.
  private func rows(of table: Table) throws -> Rows {
    let names = table.storedColumns
    let key = table.key.map { "quote(\(SQLName.quoted($0)))" }.joined(separator: " || ',' || ")
    let shown =
      table.identity.map { "quote(\(SQLName.quoted($0)))" }
      + names.map(SQLName.quoted).map { "typeof(\($0)) || quote(\($0)) || hex(\($0))" } + [key]
    let connection = try Connection(path: path)
    // The schema of one of the two may lack a table.
    guard
      let rows = try? connection.prepare(
        "SELECT \(shown.joined(separator: ", ")) FROM \(table.quoted)"
      )
    else { return [:] }
    var values: Rows = [:]
    while try rows.step() {
      let key = table.identity.indices.map { rows.text(at: $0) }
      values[key] = Dictionary(
        uniqueKeysWithValues: (names + [""]).enumerated().map {
          ($1, rows.text(at: table.identity.count + $0))
        }
      )
    }
    return values
  }

  /// The rows of all tables that both have, also the counters of keys.
  private func rows() throws -> [String: Rows] {
    let counters = Table(
      name: "sqlite_sequence",
      key: ["name"],
      columns: ["seq"],
      inserts: [],
      definition: "WITHOUT ROWID"
    )
    let log = Table(name: "log", key: ["rowid"], columns: ["a", "b"], inserts: [], definition: "")
    var rows: [String: Rows] = [:]
    for table in tables + [archive, counters, log].compactMap(\.self) {
      rows[table.name] = try self.rows(of: table)
    }
    return rows
  }

  private mutating func row(
    of table: Table,
    in connection: Connection
  ) throws -> (condition: String, key: [String], isChosen: Bool)? {
    let keys = table.key.map { "quote(\(SQLName.quoted($0)))" }.joined(separator: ", ")
    let rows = try connection.prepare("SELECT chosen, \(keys) FROM \(table.quoted)")
    var found: [(isChosen: Bool, key: [String])] = []
    while try rows.step() {
      found.append((rows.integer(at: 0) == 1, table.key.indices.map { rows.text(at: $0 + 1) }))
    }
    guard let row = found.randomElement(using: &random) else { return nil }
    let conditions = zip(table.key, row.key).map { "\(SQLName.quoted($0)) = \($1)" }
    return (conditions.joined(separator: " AND "), row.key, row.isChosen)
  }
}
