import BatchTestSupport
import Foundation
import Testing

#if PostgreSQL
import BatchPostgres
#endif

/// Random edits between the look at a plan and its run: a run that differs from the plan is refused, and
/// one that does not is not.
///
/// `BATCH_SEQUENCES` says how many, on each store.
@Suite(.timeLimit(.minutes(60))) struct ApprovalModelTests {
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 40

  @Test(arguments: 0..<count)
  func `a database runs what its named plan said, and refuses only what differs`(
    seed: UInt64
  ) throws {
    try Self.check(EditedStore.sqlite(), seed)
  }

  #if PostgreSQL
  @Test(arguments: 0..<count)
  func `a server runs what its named plan said, and refuses only what differs`(
    seed: UInt64
  ) throws {
    try Self.check(EditedStore.server(), seed)
  }
  #endif

  private static func check(_ store: EditedStore, _ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var draft = DraftJob(using: &random)
    try store.write(draft, spaced: false)
    let planned = try store.digest()
    let facts = try store.facts(draft)
    let approved = draft
    var edits: [String] = []
    for _ in 0..<Int.random(in: 1...2, using: &random) {
      edits.append(
        Bool.random(using: &random)
          ? draft.edit(using: &random) : try store.edit(draft, using: &random)
      )
    }
    try store.write(draft, spaced: Bool.random(using: &random))
    let told: Comment = "seed \(seed): \(edits), \(approved) -> \(draft)"
    let isOther =
      try store.facts(draft) != facts
      || draft.material.effective(onServer: store.isServer)
        != approved.material.effective(onServer: store.isServer)
    #expect(try (store.digest() != planned) == isOther, told)
    let before = try store.rows("t")
    try store.run("CREATE TABLE expected AS SELECT * FROM t")
    try store.run(approved.statement(over: "expected"))
    let run = try store.batch("run", "job.json", "--plan", planned)
    guard !isOther else {
      #expect(run.status == 2 && run.errors.contains("the plan is not"), "\(told) \(run.errors)")
      #expect(try store.rows("t") == before, told)
      return
    }
    #expect(run.status == 0 || run.status == 4, "\(told) \(run.errors)")
    #expect(try store.rows("t") == store.rows("expected"), told)
  }
}

/// A job over the table `t`, of which each field may be edited.
struct DraftJob: CustomStringConvertible {
  /// What of the job says which rows get which values, and how.
  struct Material: Hashable {
    var isDelete = false
    var set = ["n": "n + 1"]
    var modulus = 2
    var most = 40
    var limit: Int?
    var isDescending = false
    var recheck = "row"
    var skipsUnchanged = false
    var hasUndo = false
    var chunkSize = 10
    var target: String?
    var rate: Int?
    var sleepRatio: Double?
    var skip = 0
    var canary: Int?
    var hook: String?
    var enforcesForeignKeys = false

    /// Without what the action, or a server, has no use for.
    func effective(onServer isServer: Bool) -> Self {
      var effective = self
      if isServer { effective.enforcesForeignKeys = false }
      guard isDelete else { return effective }
      effective.set = [:]
      effective.skipsUnchanged = false
      return effective
    }
  }

  var material = Material()
  /// What a reviewer need not look at again.
  var isDescribed = false
  var workers = 2
  var retries = 3
  var history = 20
  var interval = "1s"

  var description: String { "\(material)" }

  init(using random: inout SeededGenerator) {
    for _ in 0..<Int.random(in: 0...8, using: &random) { _ = edit(using: &random) }
  }

  /// Gives one of the fields another value, or perhaps the same.
  ///
  /// - Returns: Which.
  mutating func edit(using random: inout SeededGenerator) -> String {
    func one<Value>(_ values: Value...) -> Value {
      values[Int.random(in: values.indices, using: &random)]
    }
    let field = Int.random(in: 0..<22, using: &random)
    switch field {
    case 0: material.isDelete.toggle()
    case 1:
      material.set = one(
        ["n": "n + 1"],
        ["n": "n + 2"],
        ["n": "n+1"],
        ["n": "n + 1", "m": "m * 2"],
        ["m": "n"],
        ["n": "n + :most"]
      )
    case 2: material.modulus = one(1, 2, 3)
    case 3: material.most = one(40, 41, 50)
    case 4: material.limit = one(nil, 5, 500)
    case 5: material.isDescending.toggle()
    case 6: material.recheck = one("row", "skip", "fail")
    case 7: material.skipsUnchanged.toggle()
    case 8: material.hasUndo.toggle()
    case 9: material.chunkSize = one(7, 10, 100)
    case 10: material.target = one(nil, "20ms", "50ms")
    case 11: material.rate = one(nil, 10_000, 20_000)
    case 12: material.sleepRatio = one(nil, 0.01)
    case 13: material.skip = one(0, 5, 6)
    case 14: material.canary = one(nil, 3, 4)
    case 15: material.hook = one(nil, "/bin/true", "/usr/bin/true")
    case 16: material.enforcesForeignKeys.toggle()
    case 17: isDescribed.toggle()
    case 18: workers = one(1, 2, 3)
    case 19: retries = one(0, 3)
    case 20: history = one(5, 20)
    default: interval = one("1s", "2s")
    }
    return "field \(field)"
  }

  var condition: String { "id % \(material.modulus) = 0 AND m <= :most" }

  private func plain(_ sql: String) -> String { sql.replacing(":most", with: "\(material.most)") }

  /// The rows that the job selects.
  var selection: String {
    let order = "id\(material.isDescending ? " DESC" : "")"
    let limit = material.limit.map { " ORDER BY \(order) LIMIT \($0)" } ?? ""
    return "SELECT id FROM old WHERE \(plain(condition))\(limit)"
  }

  /// One statement that does what the job does.
  func statement(over table: String) -> String {
    let rows = "WHERE id IN (\(selection))"
    if material.isDelete { return "DELETE FROM \(table) \(rows)" }
    let assignments = material.set.map { "\($0) = \(plain($1))" }
    return "UPDATE \(table) SET \(assignments.joined(separator: ", ")) \(rows)"
  }

  func json(_ database: [String: Any], isServer: Bool) -> [String: Any] {
    var database = database
    if !isServer { database["foreignKeys"] = material.enforcesForeignKeys }
    var source: [String: Any] = ["entity": "t", "where": condition, "recheck": material.recheck]
    if material.isDescending || material.limit != nil {
      source["orderBy"] = ["\(material.isDescending ? "-" : "")id"]
    }
    source["limit"] = material.limit
    var action: [String: Any] = ["type": "delete"]
    if !material.isDelete {
      action = ["type": "update", "set": material.set]
      if material.skipsUnchanged { action["unchanged"] = "skip" }
    }
    var chunk: [String: Any] = ["size": material.chunkSize]
    if let target = material.target { chunk["target"] = target }
    var throttle: [String: Any] = [:]
    if let rate = material.rate { throttle["identifiersPerSecond"] = rate }
    if let ratio = material.sleepRatio { throttle["sleepRatio"] = ratio }
    var job: [String: Any] = [
      "version": 1, "name": "job", "database": database, "source": source, "action": action,
      "parameters": ["most": ["type": "integer", "default": material.most]], "chunk": chunk,
      "throttle": throttle,
      "workers": workers, "retry": ["limit": retries],
      "undo": material.hasUndo,
    ]
    if material.skip > 0 { job["skip"] = ["limit": material.skip] }
    if let rows = material.canary { job["canary"] = ["rows": rows, "then": "1ms"] }
    if let hook = material.hook { job["hooks"] = ["onFinish": [hook]] }
    if !isServer {
      job["checkpoint"] = ["interval": interval]
      job["history"] = history
    }
    if isDescribed { job["description"] = "what it is for" }
    return job
  }
}

/// A database whose rows and schema are edited, too.
struct EditedStore {
  let directory: TemporaryDirectory
  let database: [String: Any]
  let isServer: Bool
  let run: (String) throws -> Void
  let texts: (String) throws -> [String]

  static func sqlite() throws -> EditedStore {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(in: directory)
    let store = EditedStore(
      directory: directory,
      database: ["path": "test.db"],
      isServer: false,
      run: { try TestDatabase.make(in: directory, $0) },
      texts: { try TestDatabase.texts(path, $0) }
    )
    try store.fill()
    return store
  }

  #if PostgreSQL
  static func server() throws -> EditedStore {
    let database = try TestPostgres()
    let session = try database.session()
    let store = EditedStore(
      directory: try TemporaryDirectory(),
      database: ["url": database.cluster.url(database: database.name)],
      isServer: true,
      run: { [database] in try database.run($0) },
      texts: { sql in
        let rows = try session.execute(sql)
        return (0..<rows.count).map { rows.text($0, 0) ?? "" }
      }
    )
    try store.fill()
    return store
  }
  #endif

  private func fill() throws {
    let numbers =
      "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60) SELECT i, 0, i FROM c"
    try run("CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER, m INTEGER, note TEXT)")
    try run("INSERT INTO t (id, n, m) \(numbers)")
    try run("CREATE TABLE other (x INTEGER)")
  }

  func write(_ draft: DraftJob, spaced isSpaced: Bool) throws {
    let data = try JSONSerialization.data(
      withJSONObject: draft.json(database, isServer: isServer),
      options: isSpaced ? [.prettyPrinted, .sortedKeys] : [.sortedKeys]
    )
    try directory.write(String(decoding: data, as: UTF8.self), to: "job.json")
  }

  func batch(_ arguments: String...) throws -> BatchProgram.Result {
    try BatchProgram(arguments, in: directory).wait()
  }

  func digest() throws -> String {
    let plan = try batch("plan", "job.json", "--digest", "--json")
    try #require(plan.status == 0, "\(plan.errors)")
    return try #require(JSONOutput.object(plan.output)["digest"] as? String, "\(plan.errors)")
  }

  func rows(_ table: String) throws -> [String] {
    try texts(
      "SELECT id || ' ' || n || ' ' || m || ' ' || coalesce(note, '') FROM \(table) ORDER BY id"
    )
  }

  /// What a plan depends on outside the job: the keys of its rows, and the schema of what it touches.
  func facts(_ draft: DraftJob) throws -> [String] {
    try run("DROP TABLE IF EXISTS old")
    try run("CREATE TABLE old AS SELECT * FROM t")
    let triggers =
      isServer
      ? "SELECT tgname::text FROM pg_trigger WHERE tgrelid = 't'::regclass ORDER BY 1"
      : """
      SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 't'
      AND name LIKE '%\(draft.material.isDelete ? "DELETE" : "UPDATE")' ORDER BY 1
      """
    let type =
      isServer
      ? "SELECT atttypid::regtype::text FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'm'"
      : "SELECT type FROM pragma_table_info('t') WHERE name = 'm'"
    // A deletion keeps copies of all columns.
    let isWhole = draft.material.isDelete && draft.material.hasUndo
    let columns =
      isServer
      ? "SELECT count(*)::text FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0"
      : "SELECT count(*) FROM pragma_table_info('t')"
    return try texts(draft.selection).sorted() + texts(triggers) + texts(type)
      + (isWhole ? texts(columns) : [])
  }

  /// Changes rows or the schema.
  ///
  /// - Returns: How.
  func edit(_ draft: DraftJob, using random: inout SeededGenerator) throws -> String {
    let id = Int.random(in: 1...60, using: &random)
    let name = "name\(UInt32.random(in: 0...9999, using: &random))"
    var edits = [
      "INSERT INTO t (id, n, m) SELECT max(id) + 1, 0, \(id) FROM t",
      "DELETE FROM t WHERE id = \(id)",
      "UPDATE t SET m = m + 30 WHERE id = \(id)",
      "UPDATE t SET n = 7, note = 'edited' WHERE id = \(id)",
      "CREATE INDEX \(name) ON t (m)",
      "CREATE TABLE \(name) (x INTEGER)",
      "ALTER TABLE t ADD COLUMN \(name) INTEGER",
      "INSERT INTO other VALUES (\(id))",
    ]
    if isServer {
      let function =
        "CREATE FUNCTION \(name)() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
      for table in ["t", "other"] {
        edits.append(
          "\(function); CREATE TRIGGER \(name) AFTER UPDATE OR DELETE ON \(table) FOR EACH ROW EXECUTE FUNCTION \(name)()"
        )
      }
      edits.append("ALTER TABLE t ALTER COLUMN m TYPE bigint")
    } else {
      for table in ["t", "other"] {
        for event in ["UPDATE", "DELETE"] {
          edits.append(
            "CREATE TRIGGER \(name)\(event) AFTER \(event) ON \(table) BEGIN SELECT 1; END"
          )
        }
      }
    }
    let edit = edits[Int.random(in: edits.indices, using: &random)]
    try run(edit)
    return edit
  }
}
