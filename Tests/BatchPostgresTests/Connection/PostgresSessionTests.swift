#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchPostgres

@Suite struct PostgresSessionTests {
  private let database: TestPostgres
  private let session: PostgresSession

  init() throws {
    database = try TestPostgres()
    session = try database.session()
  }

  @Test func `values are bound and returned unchanged`() throws {
    let texts = ["", "it's", "a\\b", "'; DROP TABLE t; --", "ünïcode 🐘", "NULL", "{1,2}"]
    for text in texts { #expect(try session.text("SELECT $1", .text(text)) == text) }
    for value in [Int64.min, -1, 0, .max] {
      #expect(try session.integer("SELECT $1 + 0", .integer(value)) == value)
    }
    for value in [0.1, -1e300, .leastNonzeroMagnitude, .infinity, -.infinity] {
      #expect(try session.text("SELECT $1", .real(value)).flatMap(Double.init) == value)
    }
    #expect(try session.text("SELECT $1::float8", .real(.nan)) == "NaN")
    #expect(try session.text("SELECT $1 IS NULL", .null) == "t")
    #expect(try session.text("SELECT NOT $1", .boolean(false)) == "t")
    #expect(try session.text("SELECT encode($1, 'hex')", .blob([0, 255, 0])) == "00ff00")
    #expect(try session.text("SELECT octet_length($1)", .blob([])) == "0")
    let integers = PostgresArray([3, -1, Int64.max])
    #expect(try session.text("SELECT $1", .array(integers)) == "{3,-1,\(Int64.max)}")
    #expect(try session.text("SELECT $1", .array(PostgresArray([Int64]()))) == "{}")
    var words = PostgresArray(["a", "", "NULL", "it's \"x\", {y}"])
    words.appendNull()
    let word =
      "SELECT string_agg(coalesce(w, '-'), '|' ORDER BY n) FROM unnest($1) WITH ORDINALITY AS u (w, n)"
    #expect(try session.text(word, .array(words)) == "a||NULL|it's \"x\", {y}|-")
    var blobs = PostgresArray(of: .blob)
    blobs.append(bytes: [0, 255].span)
    #expect(try session.text("SELECT encode(($1::bytea[])[1], 'hex')", .array(blobs)) == "00ff")
    let blob = try session.execute("SELECT '\\x00ff27'::bytea, ''::bytea, NULL::bytea")
    #expect(blob.blob(0, 0) == [0, 255, 39])
    #expect(blob.blob(0, 1) == [])
    #expect(blob.blob(0, 2) == nil)
    #expect(try session.text("SELECT $1 > now()", .literal("2100-01-01")) == "t")
  }

  @Test func `a text with a NUL is refused before it is sent`() throws {
    let error = #expect(throws: BatchError.self) { try session.text("SELECT $1", .text("a\0b")) }
    #expect(error?.code == .invalidValue)
    #expect(try session.text("SELECT 1") == "1")
  }

  @Test func `several statements in one text are refused`() throws {
    let error = #expect(throws: BatchError.self) {
      try session.execute("SELECT 1; CREATE TABLE t (a int)")
    }
    #expect(error?.code == .invalidSQL)
    #expect(try session.text("SELECT to_regclass('t')") == nil)
  }

  @Test func `describing a statement does not run it`() throws {
    try session.run("CREATE SEQUENCE s")
    let columns = try session.describe("SELECT nextval('s') AS n, 'a' AS t")
    #expect(columns.columnCount == 2)
    #expect(columns.name(ofColumn: 1) == "t")
    #expect(columns.type(ofColumn: 0) == 20)
    #expect(try session.text("SELECT is_called FROM s") == "f")
  }

  // MARK: Transactions

  @Test func `a transaction inside an open one is refused, and commits nothing of it`() throws {
    try session.run("CREATE TABLE nested (n int)")
    var inner: BatchError?
    #expect(throws: BatchError.self) {
      try session.transaction { () throws(BatchError) in
        try session.execute("INSERT INTO nested VALUES (1)")
        do throws(BatchError) {
          try session.transaction { () throws(BatchError) in
            try session.execute("INSERT INTO nested VALUES (2)")
          }
        } catch {
          inner = error
        }
        try session.execute("INSERT INTO nested VALUES (3)")
        throw BatchError(.invalidSQL, "as if something failed")
      }
    }
    #expect(inner?.message == "a transaction is open already")
    #expect(try session.text("SELECT count(*) FROM nested") == "0")
    // Nor before the first statement of the outer one.
    try session.transaction { () throws(BatchError) in
      #expect(throws: BatchError.self) { try session.begin(TransactionOptions()) }
      try session.execute("INSERT INTO nested VALUES (4)")
    }
    #expect(try session.text("SELECT string_agg(n::text, ',') FROM nested") == "4")
  }

  @Test func `a transaction commits as a whole or not at all`() throws {
    try session.run("CREATE TABLE t (a int)")
    try session.transaction { () throws(BatchError) in
      try session.execute("INSERT INTO t VALUES (1)")
    }
    #expect(throws: BatchError.self) {
      try session.transaction { () throws(BatchError) in
        try session.execute("INSERT INTO t VALUES (2)")
        try session.execute("SELECT 1 / 0")
      }
    }
    #expect(throws: BatchError.self) {
      try session.transaction { () throws(BatchError) in
        try session.execute("INSERT INTO t VALUES (3)")
        // No error reports it, but the server has rolled back the transaction.
        _ = try? session.execute("SELECT 1 / 0")
      }
    }
    #expect(!session.isInTransaction)
    #expect(try session.text("SELECT string_agg(a::text, ',') FROM t") == "1")
  }

  @Test func `the settings of a transaction end with it`() throws {
    let before = try session.text("SHOW lock_timeout")
    let options = TransactionOptions(
      .serializable,
      isReadOnly: true,
      lockTimeout: .milliseconds(1_500),
      statementTimeout: .seconds(7),
      idleTimeout: .seconds(9)
    )
    try session.run("SET timezone = 'Asia/Tokyo'; SET datestyle = 'German'")
    try session.transaction(options) { () throws(BatchError) in
      for (name, value) in [
        ("lock_timeout", "1500ms"), ("statement_timeout", "7s"), ("timezone", "UTC"),
        ("idle_in_transaction_session_timeout", "9s"), ("transaction_isolation", "serializable"),
        ("transaction_read_only", "on"), ("datestyle", "ISO, MDY"),
      ] {
        let found = try session.text("SHOW \(name)")
        #expect(found == value, "\(name)")
      }
    }
    #expect(try session.text("SHOW lock_timeout") == before)
    #expect(try session.text("SHOW timezone") == "Asia/Tokyo")
  }

  @Test func `a read-only transaction refuses to write`() throws {
    try session.run("CREATE TABLE t (a int)")
    let error = #expect(throws: BatchError.self) {
      try session.transaction(TransactionOptions(isReadOnly: true)) { () throws(BatchError) in
        try session.execute("INSERT INTO t VALUES (1)")
      }
    }
    #expect(error?.code == .readOnly)
  }

  @Test func `a lock timeout is reported as one`() throws {
    try session.run("CREATE TABLE t (a int)")
    let other = try database.session()
    try other.begin(TransactionOptions())
    try other.execute("LOCK TABLE t")
    let error = #expect(throws: BatchError.self) {
      try session.transaction(TransactionOptions(lockTimeout: .milliseconds(10))) {
        () throws(BatchError) in
        try session.execute("SELECT * FROM t")
      }
    }
    #expect(error?.isTransient == true)
    #expect(error?.postgres?.state == .lockNotAvailable)
    other.rollBack()
  }

  @Test func `a statement timeout is reported as a cancelled statement and not as an interrupt`()
    throws
  {
    let error = #expect(throws: BatchError.self) {
      try session.transaction(TransactionOptions(statementTimeout: .milliseconds(10))) {
        () throws(BatchError) in
        try session.execute("SELECT pg_sleep(60)")
      }
    }
    #expect(error?.code == .statementCancelled)
  }

  @Test func `a deadlock is a transient error`() async throws {
    try session.run(
      "CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)"
    )
    let address = try database.address
    func update(_ first: Int, _ second: Int, _ meet: Rendezvous) async -> BatchError? {
      let connection = PostgresConnection(label: "test", address: address)
      do throws(BatchError) {
        try await connection.perform { session throws(BatchError) in
          try session.transaction { () throws(BatchError) in
            try session.execute("UPDATE t SET n = n + 1 WHERE a = \(first)")
            meet.arrive()
            try session.execute("UPDATE t SET n = n + 1 WHERE a = \(second)")
          }
        }
        return nil
      } catch {
        return error
      }
    }
    let meet = Rendezvous()
    async let one = update(1, 2, meet)
    async let two = update(2, 1, meet)
    let errors = await [one, two].compactMap(\.self)
    #expect(errors.count == 1)
    #expect(errors.first?.isTransient == true)
    #expect(errors.first?.postgres?.state == .deadlockDetected)
    #expect(try session.text("SELECT sum(n) FROM t") == "2")
  }

  // MARK: The end of a session

  @Test func `a connection replaces a session that the server has ended`() async throws {
    let connection = PostgresConnection(label: "test.victim", address: try database.address)
    @Sendable func processID(_ session: PostgresSession) throws(BatchError) -> Int64? {
      try session.integer("SELECT pg_backend_pid()")
    }
    let first = try await connection.perform(processID)
    try session.execute("SELECT pg_terminate_backend($1::int)", .literal("\(first ?? 0)"))
    let error = await #expect(throws: BatchError.self) { try await connection.perform(processID) }
    #expect(error?.code == .connectionLost)
    #expect(try await connection.perform(processID) != first)
    await connection.close()
    #expect(try await connection.perform(processID) != first)
  }

  @Test func `the fate of a COMMIT on a broken connection is unknown`() throws {
    // A deferred trigger ends its own session in the middle of the COMMIT.
    try session.run(
      """
      CREATE TABLE t (a int);
      CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER c AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION f()
      """
    )
    let error = #expect(throws: BatchError.self) {
      try session.transaction { () throws(BatchError) in
        try session.execute("INSERT INTO t VALUES (1)")
      }
    }
    #expect(error?.code == .connectionLost)
    #expect(error?.postgres?.state == .transactionResolutionUnknown)
    #expect(session.isLost)
    #expect(throws: BatchError.self) { try session.execute("SELECT 1") }
  }

  @Test func `an interrupt ends the current statement and all later ones`() async throws {
    let connection = PostgresConnection(label: "test.sleeper", address: try database.address)
    let sleeper = Task {
      try await connection.perform { session throws(BatchError) in
        _ = try session.execute("SELECT pg_sleep(600)")
      }
    }
    try await database.wait(
      until:
        "SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'"
    )
    connection.interrupt()
    let error = await #expect(throws: BatchError.self) { try await sleeper.value }
    #expect(error?.code == .interrupted)
    let later = await #expect(throws: BatchError.self) {
      try await connection.perform { session throws(BatchError) in try session.run("SELECT 1") }
    }
    #expect(later?.code == .interrupted)
  }

  // MARK: Rows as they arrive

  @Test func `rows arrive one by one, and the rest may be abandoned`() throws {
    var sum: Int64 = 0
    let count = try session.forEachRow(
      "SELECT g FROM generate_series(1, $1) AS g",
      [.integer(5_000)]
    ) {
      row throws(BatchError) in
      sum += row.text(0).flatMap { Int64($0) } ?? 0
    }
    #expect(count == 5_000)
    #expect(sum == 12_502_500)
    struct Enough: Error {}
    let enough = BatchError(.invalidValue, "enough")
    let error = #expect(throws: BatchError.self) {
      try session.forEachRow("SELECT generate_series(1, 1000000000)") {
        _ throws(BatchError) in throw enough
      }
    }
    #expect(error?.message == "enough")
    #expect(try session.text("SELECT 1") == "1")
  }

  @Test func `an error after the first rows is reported`() throws {
    var count = 0
    let error = #expect(throws: BatchError.self) {
      try session.forEachRow("SELECT 1 / (g - 900) FROM generate_series(1, 1000) AS g") {
        _ throws(BatchError) in count += 1
      }
    }
    #expect(error?.code == .invalidValue)
    #expect(count == 899)
    #expect(try session.text("SELECT 1") == "1")
  }

  @Test func `the server's notices reach their listeners`() throws {
    var heard: [String] = []
    try session.listening {
      heard.append($0.message)
    } during: { () throws(BatchError) in
      try session.run("DO 'BEGIN RAISE NOTICE ''one''; RAISE WARNING ''two''; END'")
    }
    try session.run("DO 'BEGIN RAISE NOTICE ''three''; END'")
    #expect(heard == ["one", "two"])
  }
}

/// Where two threads wait for each other.
final class Rendezvous: Sendable {
  private let first = DispatchSemaphore(value: 0)
  private let second = DispatchSemaphore(value: 0)
  private let count = Lock(0)

  func arrive() {
    let isFirst = count.withLock { count in
      count += 1
      return count == 1
    }
    (isFirst ? second : first).signal()
    (isFirst ? first : second).wait()
  }
}
#endif
