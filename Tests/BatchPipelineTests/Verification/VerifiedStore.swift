import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation

/// A database of a random schema, a job over its table `t`, and one undeclared change.
struct VerifiedStore {
  /// The undeclared change.
  enum Plant: CaseIterable {
    case nothing, cell, type, rowMore, rowLess, trigger, schema, cells
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

  /// The expected result: the number of differences, and the place of a single one.
  struct Finding {
    var count = 0
    var kind: StoreDifference.Kind?
    var table: String?
    var key: [String] = []
    var column: String?
  }

  let directory: TemporaryDirectory
  let path: String
  let copy: String
  let job: Job
  let plant: Plant
  private let tables: [Table]
  /// The columns of `t` that the job sets.
  private let declared: [String]
  private let archive: Table?
  private var random: SeededGenerator

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
    var declared: [String] = []
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
      let free = source.columns.filter { $0 != "chosen" }
      declared = Array(free.shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random)))
      var set: [Job.Assignment] = []
      for column in declared {
        let value = ["'new'", "1", "1.0", "NULL", SQLName.quoted(column), "chosen || 'x'"]
        set.append(Job.Assignment(column, to: value.randomElement(using: &random) ?? ""))
      }
      action = .update(.init(set: set))
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
    self.declared = declared
    self.archive = archive
    job = Job(
      name: "job",
      database: .init(path: .init(path)),
      source: .init(entity: "t", where: "chosen = 1"),
      action: action,
      chunk: .init(size: 7),
      workers: 1,
      checkpoint: .init(path: .init(directory.file("job.batch")))
    )
    try TestDatabase.make("a.db", in: directory, "PRAGMA page_size = 1024")
    let connection = try Connection(path: path)
    try connection.execute("BEGIN")
    for statement in statements { try connection.execute(statement) }
    try connection.execute("COMMIT")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
  }

  // MARK: Schemas

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
    let types = ["", "INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC"]
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

  /// Makes the change; returns the expected result, which is none if there is nothing to change.
  mutating func change() throws -> Finding {
    let connection = try Connection(path: path)
    var finding = Finding()
    guard let table = tables.randomElement(using: &random) else { return finding }
    finding.table = table.name
    switch plant {
    case .nothing: return Finding()
    case .trigger:
      finding.table = "log"
      finding.kind = .added
      let count = try connection.value("SELECT count(*) FROM log")
      if case .integer(let count) = count { finding.count = Int(count) }
    case .schema:
      let statement = [
        "CREATE INDEX more ON t (chosen)", "CREATE TABLE more (a)", "CREATE VIEW more AS SELECT 1",
        "ALTER TABLE t ADD COLUMN more DEFAULT 3", "DROP TABLE log",
      ].randomElement(using: &random)
      try connection.execute(statement ?? "")
      finding = Finding(count: 1, kind: .schema)
    case .rowMore:
      let source = "\(table.quoted) (\(SQLName.list(table.key + ["chosen"])))"
      let values = table.key.map { $0 == "p" ? "'k-'" : "777777777" }.joined(separator: ", ")
      try connection.execute("INSERT INTO \(source) VALUES (\(values), 0)")
      finding.count = 1
      finding.kind = .added
      try notice(sequenceOf: table, &finding)
      // It may have got the rowid of a row that was deleted.
      if case .delete = job.action, table.name == "t" { finding.kind = nil }
    case .rowLess:
      guard let row = try row(of: table, in: connection) else { return Finding() }
      try connection.execute("DELETE FROM \(table.quoted) WHERE \(row.condition)")
      finding.count = 1
      finding.kind = .removed
      finding.key = row.key
      // A deletion may have deleted this one as well.
      if case .delete = job.action, table.name == "t", row.isChosen {
        finding.count = archive == nil ? 0 : 1
      }
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
      finding.count = try countsByTable().values.reduce(0) { $0 + $1.changed }
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
      finding.count = table.name == "t" && row.isChosen && declared.contains(column) ? 0 : 1
      if case .delete = job.action, table.name == "t", row.isChosen { finding.count = 1 }
    }
    return finding
  }

  // MARK: Counts

  /// How many rows of each common table differ without being declared, and in which columns.
  func countsByTable() throws -> [String: (changed: Int, columns: [String: Int])] {
    var counts: [String: (changed: Int, columns: [String: Int])] = [:]
    let isUpdate = if case .update = job.action { true } else { false }
    for table in tables + (archive.map { [$0] } ?? []) {
      let (now, before) = (try values(of: table, path), try values(of: table, copy))
      let free = isUpdate && table.name == "t" ? Set(declared + ["stored"]) : []
      for (key, old) in before {
        guard let new = now[key] else { continue }
        let isChosen = old["chosen"]?.hasPrefix("integer1") == true
        let columns = table.storedColumns.filter { name in
          old[name] != new[name] && !(isChosen && free.contains(name))
        }
        if columns.isEmpty { continue }
        counts[table.name, default: (0, [:])].changed += 1
        for name in columns { counts[table.name]?.columns[name, default: 0] += 1 }
      }
    }
    return counts
  }

  /// The values of the rows as SQL writes them, with their types and bytes, by what identifies them.
  private func values(
    of table: Table,
    _ path: String
  ) throws -> [[String]: [String: String]] {
    let names = table.storedColumns
    let shown =
      table.identity.map { "quote(\(SQLName.quoted($0)))" }
      + names.map(SQLName.quoted).map { "typeof(\($0)) || quote(\($0)) || hex(\($0))" }
    let connection = try Connection(path: path)
    // The schema of one of the two may lack a table.
    guard
      let rows = try? connection.prepare(
        "SELECT \(shown.joined(separator: ", ")) FROM \(table.quoted)"
      )
    else { return [:] }
    var values: [[String]: [String: String]] = [:]
    while try rows.step() {
      let key = table.identity.indices.map { rows.text(at: $0) }
      values[key] = Dictionary(
        uniqueKeysWithValues: names.enumerated().map {
          ($1, rows.text(at: table.identity.count + $0))
        }
      )
    }
    return values
  }

  /// A row of an AUTOINCREMENT table that is inserted shows in `sqlite_sequence` too.
  private func notice(sequenceOf table: Table, _ finding: inout Finding) throws {
    if table.definition.contains("AUTOINCREMENT") {
      finding.count = 2
      finding.kind = nil
    }
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
