#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct PostgresErrorTests {
  @Test(arguments: [
    ("40001", BatchError.Code.busy, true, false), ("40P01", .busy, true, false),
    ("55P03", .busy, true, false), ("53300", .connectionLost, true, false),
    ("08006", .connectionLost, true, false), ("57P01", .connectionLost, true, false),
    ("57P03", .connectionLost, true, false), ("25P03", .connectionLost, true, false),
    ("57014", .statementCancelled, false, false), ("25006", .readOnly, false, false),
    ("42501", .accessDenied, false, false), ("28P01", .accessDenied, false, false),
    ("53100", .diskFull, false, false), ("23505", .constraint, false, true),
    ("23514", .constraint, false, true), ("44000", .constraint, false, true),
    ("P0001", .constraint, false, true), ("38000", .constraint, false, true),
    ("21000", .invalidValue, false, true), ("54000", .invalidValue, false, true),
    ("54001", .databaseAccess, false, false), ("08007", .connectionLost, true, false),
    ("22012", .invalidValue, false, true),
    ("42P01", .unknownEntity, false, false), ("42703", .unknownAttribute, false, false),
    ("42601", .invalidSQL, false, false), ("XX000", .databaseAccess, false, false),
  ])
  func `the SQLSTATE of an error determines its code and kind`(
    state: String,
    code: BatchError.Code,
    isTransient: Bool,
    isAboutRows: Bool
  ) {
    let error = BatchError(PostgresError("m", state: SQLState(rawValue: state)), server: "s")
    #expect(error.code == code)
    #expect(error.isTransient == isTransient)
    #expect(error.isAboutRows == isAboutRows)
    #expect(error.isAboutAmount == (code == .statementCancelled))
    #expect(error.place == "s")
  }

  @Test func `a statement that was cancelled on request counts as interrupted`() {
    let error = PostgresError("m", state: .queryCanceled)
    #expect(BatchError(error, server: "s", isInterrupted: true).code == .interrupted)
  }

  @Test func `the error of a refused row names its column, its constraint and its values`() throws {
    let database = try TestPostgres(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL CONSTRAINT small CHECK (n < 9), u int UNIQUE);
      INSERT INTO t VALUES (1, 1, 1)
      """
    )
    let session = try database.session()
    func refusal(_ sql: String) throws -> BatchError {
      try #require(throws: BatchError.self) { try session.execute(sql) }
    }
    let check = try refusal("UPDATE t SET n = 10")
    #expect(check.code == .constraint)
    #expect(check.postgres?.constraint == "small")
    #expect(check.postgres?.table == "t")
    #expect(check.message.contains("\"small\""))
    #expect(check.message.contains("(1, 10, 1)"))
    let null = try refusal("UPDATE t SET n = NULL")
    #expect(null.postgres?.column == "n")
    let twice = try refusal("INSERT INTO t VALUES (2, 1, 1)")
    #expect(twice.message.contains("Key (u)=(1) already exists"))
    let zero = try refusal("SELECT n / 0 FROM t")
    #expect(zero.code == .invalidValue)
    let hint = try refusal("SELECT nn FROM t")
    #expect(hint.code == .unknownAttribute)
    #expect(hint.remedy?.contains("t.n") == true)
  }

  // MARK: On a server

  @Test func `a connection that the server ends is reported as lost and opened again`() async throws
  {
    let database = try TestPostgres()
    let connection = PostgresConnection(label: "batch.ended", address: try database.address)
    let ended = await #expect(throws: BatchError.self) {
      try await connection.perform { session throws(BatchError) in
        _ = try session.execute("SELECT pg_terminate_backend(pg_backend_pid())")
      }
    }
    #expect(ended?.code == .connectionLost)
    #expect(ended?.isTransient == true)
    let again = try await connection.perform { session throws(BatchError) in
      try session.text("SELECT 1")
    }
    #expect(again == "1")
    await connection.close()
  }

  @Test func `a statement timeout counts as too many rows at once`() throws {
    let database = try TestPostgres()
    let session = try database.session()
    let error = #expect(throws: BatchError.self) {
      try session.transaction(TransactionOptions(statementTimeout: .milliseconds(20))) {
        () throws(BatchError) in
        try session.execute("SELECT pg_sleep(10)")
      }
    }
    #expect(error?.code == .statementCancelled)
    #expect(error?.isAboutAmount == true)
    #expect(error?.isTransient == false)
    #expect(error?.isAboutRows == false)
  }

  @Test func `conflicts with other transactions are transient errors`() throws {
    let database = try TestPostgres(
      "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)"
    )
    let (session, other) = (try database.session(), try database.session())
    // 40001: each has read what the other writes.
    try session.begin(TransactionOptions(.repeatableRead))
    try session.execute("SELECT * FROM t")
    try other.execute("UPDATE t SET n = 2")
    let conflict = #expect(throws: BatchError.self) { try session.execute("UPDATE t SET n = 3") }
    session.rollBack()
    #expect(conflict?.postgres?.state == .serializationFailure)
    #expect(conflict?.isTransient == true)
    // 55P03.
    try other.begin(TransactionOptions())
    try other.execute("UPDATE t SET n = 4")
    let lock = #expect(throws: BatchError.self) {
      try session.transaction(TransactionOptions(lockTimeout: .milliseconds(1))) {
        () throws(BatchError) in
        try session.execute("UPDATE t SET n = 5")
      }
    }
    other.rollBack()
    #expect(lock?.postgres?.state == .lockNotAvailable)
    #expect(lock?.isTransient == true)
  }

  @Test func `one session of a deadlock gets a transient error`() async throws {
    let database = try TestPostgres(
      "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)"
    )
    let address = try database.address
    let others = """
      SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
      WHERE l.locktype = 'advisory' AND d.datname = current_database()
      """
    let errors = await withTaskGroup(of: BatchError?.self) { group in
      for (first, second) in [(1, 2), (2, 1)] {
        group.addTask {
          let connection = PostgresConnection(label: "batch.deadlock", address: address)
          let answer: BatchError?
          do throws(BatchError) {
            try await connection.perform { session throws(BatchError) in
              try session.transaction { () throws(BatchError) in
                try session.run("SET LOCAL deadlock_timeout = '10ms'")
                try session.execute("UPDATE t SET n = 1 WHERE id = \(first)")
                // Until the other one has its first row too.
                try session.execute("SELECT pg_advisory_xact_lock_shared(1)")
                while try session.integer(others) ?? 0 < 2 {}
                try session.execute("UPDATE t SET n = 1 WHERE id = \(second)")
              }
            }
            answer = nil
          } catch {
            answer = error
          }
          await connection.close()
          return answer
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let refused = errors.compactMap(\.self)
    #expect(refused.count == 1)
    #expect(refused.first?.postgres?.state == .deadlockDetected)
    #expect(refused.first?.isTransient == true)
  }

  @Test func `errors of subqueries with several rows and of too large rows concern a row`() throws {
    let database = try TestPostgres(
      "CREATE TABLE t (id int PRIMARY KEY, n text UNIQUE); INSERT INTO t VALUES (1, 'a'), (2, 'b')"
    )
    let session = try database.session()
    for (sql, state) in [
      ("UPDATE t SET n = (SELECT n FROM t)", "21000"),
      (
        "UPDATE t SET n = (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 2000) AS g) WHERE id = 1",
        "54000"
      ),
    ] {
      let error = #expect(throws: BatchError.self) { try session.execute(sql) }
      #expect(error?.postgres?.state?.rawValue == state)
      #expect(error?.isAboutRows == true)
      #expect(error?.code == .invalidValue)
    }
  }
}
#endif
