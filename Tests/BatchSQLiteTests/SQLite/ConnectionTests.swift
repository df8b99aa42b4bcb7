import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct ConnectionTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(in: directory, "CREATE TABLE t (id INTEGER PRIMARY KEY, v UNIQUE)")
  }

  /// How many compiled statements the connection caches, for a text or in total.
  private func compiled(_ connection: Connection, _ sql: String? = nil) throws -> Int {
    let condition = sql.map { " WHERE sql = '\($0)'" } ?? ""
    let count = try connection.value("SELECT count(*) FROM sqlite_stmt\(condition)")
    guard case .integer(let count) = count else { return -1 }
    return Int(count)
  }

  @Test func `a cached statement is compiled once and reused without its old values`() throws {
    let connection = try Connection(path: path)
    for value in [SQLValue.integer(7), .null, .text("x")] {
      let statement = try connection.prepare("SELECT ?")
      var (hasRow, read) = (try statement.step(), statement.value(at: 0))
      #expect(hasRow && read == .null)
      statement.reset()
      try statement.bind(value, at: 1)
      (hasRow, read) = (try statement.step(), statement.value(at: 0))
      #expect(hasRow && read == value)
    }
    #expect(try compiled(connection, "SELECT ?") == 1)
  }

  @Test func `a statement that runs inside itself is compiled as a second one`() throws {
    let connection = try Connection(path: path)
    try connection.execute("INSERT INTO t (v) VALUES (1), (2), (3)")
    let sql = "SELECT id FROM t ORDER BY id"
    func use() throws -> [Int64] {
      let outer = try connection.prepare(sql)
      var seen: [Int64] = []
      while try outer.step() {
        let inner = try connection.prepare(sql)
        while try inner.step() { seen.append(outer.integer(at: 0) * 10 + inner.integer(at: 0)) }
      }
      return seen
    }
    #expect(try use() == [11, 12, 13, 21, 22, 23, 31, 32, 33])
    #expect(try compiled(connection, sql) == 1)
  }

  @Test func `a connection caches a bounded number of statements`() throws {
    let connection = try Connection(path: path)
    for number in 0..<300 { try connection.execute("SELECT \(number)") }
    #expect(try compiled(connection) <= 65)
    #expect(try compiled(connection, "SELECT 299") == 1)
    #expect(try compiled(connection, "SELECT 0") == 0)
  }

  @Test func `a statement in use outlives the cache and the connection`() throws {
    var connection: Connection? = try Connection(path: path)
    let statement = try #require(connection).prepare("SELECT 5")
    connection = nil
    let (hasRow, read) = (try statement.step(), statement.integer(at: 0))
    #expect(hasRow && read == 5)
  }

  @Test(arguments: ["", "  ", "-- nothing", "SELECT 1; SELECT 2", "SELECT 1;;"])
  func `a text that is not exactly one statement is refused`(sql: String) throws {
    let connection = try Connection(path: path)
    let error = #expect(throws: BatchError.self) { try connection.execute(sql) }
    #expect(error?.code == .invalidSQL)
  }

  @Test func `an error contains the extended code, the statement and the operation, but no values`()
    throws
  {
    let connection = try Connection(path: path)
    let sql = "INSERT INTO t (v) VALUES (?)"
    try connection.execute(sql, .text("a secret"))
    let error = try #require(
      #expect(throws: BatchError.self) { try connection.execute(sql, .text("a secret")) }
    )
    #expect(error.code == .constraint)
    #expect(error.place == path)
    #expect(error.sqlite?.resultCode.rawValue == 2067)  // SQLITE_CONSTRAINT_UNIQUE
    #expect(error.sqlite?.operation == "step")
    #expect(error.sqlite?.sql == sql)
    #expect(error.message == "UNIQUE constraint failed: t.v")
    let texts = [error.description, error.sqlite?.description ?? ""]
    #expect(!texts.contains { $0.contains("secret") })
  }

  @Test func `an error in a statement's SQL is reported as one`() throws {
    let connection = try Connection(path: path)
    let error = try #require(
      #expect(throws: BatchError.self) { try connection.execute("SELECT missing") }
    )
    #expect(error.code == .invalidSQL)
    #expect(error.sqlite?.operation == "prepare")
    #expect(error.message == "no such column: missing")
  }

  @Test func `a primary result code matches its extended codes and not vice versa`() {
    let extended = ResultCode(rawValue: 517)  // SQLITE_BUSY_SNAPSHOT
    #expect(ResultCode.SQLITE_BUSY ~= extended)
    #expect(!(extended ~= .SQLITE_BUSY))
    #expect(extended.primary == .SQLITE_BUSY)
  }

  @Test func `a connection waits for a lock as long as its busy timeout`() throws {
    let holder = try Connection(path: path)
    try holder.execute("BEGIN IMMEDIATE")
    let connection = try Connection(path: path, options: .init(busyTimeout: .milliseconds(60)))
    let clock = ContinuousClock()
    let start = clock.now
    let error = #expect(throws: BatchError.self) {
      try connection.execute("INSERT INTO t (v) VALUES (1)")
    }
    #expect(error?.code == .busy)
    #expect(start.duration(to: clock.now) >= .milliseconds(55))
    try holder.execute("COMMIT")
    try connection.execute("INSERT INTO t (v) VALUES (1)")
  }

  @Test func `a transaction commits if its closure returns and rolls back if its closure throws`()
    throws
  {
    let connection = try Connection(path: path)
    let result = try connection.transaction(.immediate) { () throws(BatchError) in
      try connection.execute("INSERT INTO t (v) VALUES (1)")
      return 9
    }
    #expect(result == 9)
    #expect(throws: BatchError.self) {
      try connection.transaction(.immediate) { () throws(BatchError) in
        #expect(!connection.isAutocommit)
        try connection.execute("INSERT INTO t (v) VALUES (2)")
        try connection.execute("INSERT INTO t (v) VALUES (2)")
      }
    }
    #expect(connection.isAutocommit)
    #expect(try TestDatabase.rows(path, "SELECT v FROM t") == [[.integer(1)]])
  }

  @Test func `a failed commit is rolled back`() throws {
    let connection = try Connection(path: path)
    try connection.execute("PRAGMA foreign_keys = on")
    try connection.execute(
      "CREATE TABLE c (p REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)"
    )
    let error = #expect(throws: BatchError.self) {
      try connection.transaction(.immediate) { () throws(BatchError) in
        try connection.execute("INSERT INTO c VALUES (99)")
      }
    }
    #expect(error?.code == .constraint)
    #expect(connection.isAutocommit)
    #expect(try connection.value("SELECT count(*) FROM c") == .integer(0))
  }

  @Test func `a transaction that SQLite has rolled back is not rolled back again`() throws {
    let connection = try Connection(path: path)
    let error = #expect(throws: BatchError.self) {
      try connection.transaction(.immediate) { () throws(BatchError) in
        try connection.execute("INSERT INTO t (v) VALUES (1)")
        try connection.execute("INSERT OR ROLLBACK INTO t (v) VALUES (1)")
      }
    }
    #expect(error?.code == .constraint)
    #expect(connection.isAutocommit)
  }

  @Test func `the count of changes excludes those of triggers`() throws {
    let connection = try Connection(path: path)
    try connection.execute("CREATE TABLE log (v)")
    try connection.execute(
      "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log VALUES (1), (2); END"
    )
    try connection.execute("INSERT INTO t (v) VALUES (1), (2), (3)")
    #expect(connection.changes == 3)
  }

  @Test func `a statement is explained without bound values`() throws {
    let connection = try Connection(path: path)
    let plan = try connection.explain("SELECT * FROM t WHERE v = :v")
    #expect(plan == ["SEARCH t USING COVERING INDEX sqlite_autoindex_t_1 (v=?)"])
  }

  @Test func `the error of a too deeply nested statement says what to do`() throws {
    let connection = try Connection(path: ":memory:")
    let deep = String(repeating: "(", count: 200) + "1" + String(repeating: ")", count: 200)
    let error = #expect(throws: BatchError.self) { try connection.execute("SELECT \(deep)") }
    #expect(error?.code == .invalidSQL && error?.remedy?.contains("nest fewer") == true)
  }
}
