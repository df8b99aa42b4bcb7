#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct CopyTests {
  private let database: TestPostgres
  private let session: PostgresSession

  init() throws {
    database = try TestPostgres()
    session = try database.session()
  }

  @Test func `copied-in bytes come out of a copy unchanged`() throws {
    try session.run("CREATE TABLE t (id int PRIMARY KEY, text text)")
    let lines = (1...3_000).map { "\($0),\"line \($0), \"\"quoted\"\"\"\n" }
    let count = try session.copyIn("COPY t FROM STDIN (FORMAT csv)") { input throws(BatchError) in
      for line in lines {
        let bytes = Array(line.utf8)
        // Pieces may end anywhere.
        let middle = bytes.count / 2
        try input.write(bytes.span.extracting(0..<middle))
        try input.write(bytes.span.extracting(middle..<bytes.count))
      }
    }
    #expect(count == 3_000)
    var copied: [UInt8] = []
    let copiedCount = try session.copyOut(
      "COPY (SELECT * FROM t ORDER BY id) TO STDOUT (FORMAT csv, FORCE_QUOTE (text))"
    ) { bytes throws(BatchError) in
      copied.append(copying: bytes)
    }
    #expect(copiedCount == 3_000)
    #expect(String(decoding: copied, as: UTF8.self) == lines.joined())
  }

  @Test func `a copy stores no row if its writer throws or the server refuses a row`() throws {
    try session.run("CREATE TABLE t (id int PRIMARY KEY)")
    let enough = BatchError(.invalidValue, "enough")
    let given = #expect(throws: BatchError.self) {
      try session.copyIn("COPY t FROM STDIN") { input throws(BatchError) in
        try input.write(Array("1\n".utf8).span)
        throw enough
      }
    }
    #expect(given?.message == "enough")
    let refused = #expect(throws: BatchError.self) {
      try session.copyIn("COPY t FROM STDIN") { input throws(BatchError) in
        try input.write(Array("1\nx\n".utf8).span)
      }
    }
    #expect(refused?.isAboutRows == true)
    #expect(try session.text("SELECT count(*) FROM t") == "0")
  }

  @Test func `an abandoned copy ends immediately, in bounded memory`() throws {
    let before = peakResidentBytes()
    let enough = BatchError(.invalidValue, "enough")
    var count = 0
    let error = #expect(throws: BatchError.self) {
      // 100 GB, which would take years.
      try session.copyOut(
        "COPY (SELECT repeat('x', 1000000) FROM generate_series(1, 100000)) TO STDOUT"
      ) { bytes throws(BatchError) in
        count += 1
        if count == 50 { throw enough }
      }
    }
    #expect(error?.message == "enough")
    #expect(try session.text("SELECT 1") == "1")
    #expect(peakResidentBytes() - before < 64 << 20)
  }

  @Test func `an unexpected copy neither hangs nor spins`() throws {
    try session.run("CREATE TABLE t (id int)")
    for sql in ["COPY t TO STDOUT", "COPY t FROM STDIN"] {
      #expect(throws: BatchError.self) { try session.execute(sql) }
      #expect(throws: BatchError.self) { try session.forEachRow(sql) { _ throws(BatchError) in } }
      #expect(try session.text("SELECT 1") == "1")
    }
    for sql in ["SELECT 1", "COPY t FROM STDIN", "COPY nowhere TO STDOUT"] {
      #expect(throws: BatchError.self) { try session.copyOut(sql) { _ throws(BatchError) in } }
      #expect(try session.text("SELECT 1") == "1")
    }
    for sql in ["SELECT 1", "COPY t TO STDOUT"] {
      #expect(throws: BatchError.self) { try session.copyIn(sql) { _ throws(BatchError) in } }
      #expect(try session.text("SELECT 1") == "1")
    }
  }

  @Test func `an error in the middle of a copy is reported as the server's error`() throws {
    var bytes = 0
    let error = #expect(throws: BatchError.self) {
      try session.copyOut(
        "COPY (SELECT 1 / (g - 90000) FROM generate_series(1, 100000) AS g) TO STDOUT"
      ) {
        bytes += $0.count
      }
    }
    #expect(error?.code == .invalidValue)
    #expect(bytes > 0)
    #expect(try session.text("SELECT 1") == "1")
  }

  @Test func `a copy ends when the server ends the session`() throws {
    let victim = try database.session()
    let processID = try #require(try victim.text("SELECT pg_backend_pid()"))
    var hasKilled = false
    let error = #expect(throws: BatchError.self) {
      try victim.copyOut(
        "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 10000000)) TO STDOUT"
      ) {
        _ throws(BatchError) in
        guard !hasKilled else { return }
        hasKilled = true
        try session.execute("SELECT pg_terminate_backend($1::int)", .literal(processID))
      }
    }
    #expect(error?.code == .connectionLost)
    #expect(victim.isLost)
  }
}
#endif
