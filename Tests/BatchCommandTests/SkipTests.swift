import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Jobs with rows that cannot be changed, as a user runs them.
@Suite struct SkipTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2000, in: directory)
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id IN (5, 77, 78, 1999)
      BEGIN SELECT RAISE(ABORT, 'this row is poison'); END
      """
    )
  }

  private func write(limit: Int, ratio: Double = 1, workers: Int = 2) throws {
    let more: [String: Any] = [
      "skip": ["limit": limit, "ratio": ratio], "chunk": ["size": 100], "workers": workers,
    ]
    try directory.write(JobText.update(adding: more), to: "job.json")
  }

  private func changed() throws -> Int {
    Int(try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n = 1")[0]) ?? -1
  }

  @Test func `a run with skipped failures does the other rows and has exit status 4`() throws {
    try write(limit: 4)
    let run = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(run.status == 4, "\(run.errors)")
    #expect(try JSONOutput.lines(run.output).last?["event"] as? String == "finished")
    let status = try JSONOutput.object(
      BatchProgram.run("status", "job.json", "--json", in: directory).output
    )
    #expect(status["state"] as? String == "completedWithFailures")
    #expect(status["done"] as? Int == 2000)
    let outcomes = try #require(status["outcomes"] as? [String: Int])
    #expect(outcomes["failed"] == 4 && outcomes["succeeded"] == 1996)
    #expect(try changed() == 1996)

    let arguments = ["ids", "job.json", "--outcome", "failed", "--format", "key"]
    let failed = try BatchProgram(arguments, in: directory).wait()
    #expect(failed.output == "5\n77\n78\n1999\n")
    let messages = try TestDatabase.texts(path, "SELECT DISTINCT message FROM _batch_failure")
    #expect(messages == ["this row is poison"])
    // The checkpoint has them too, with their errors, and needs no database for it.
    try FileManager.default.removeItem(atPath: path)
    let file = try BatchProgram(
      ["ids", "job.batch", "--outcome", "failed", "--format", "key"],
      in: directory
    ).wait()
    #expect(file.output == failed.output)
    let inspection = try JSONOutput.object(
      BatchProgram.run("inspect", "job.batch", "--json", in: directory).output
    )
    let checkpoint = try #require(inspection["run"] as? [String: Any])
    let failures = try #require(checkpoint["failed"] as? [[String: Any]])
    #expect(failures.map { $0["position"] as? Int } == [4, 76, 77, 1998])
    #expect((failures[0]["identifier"] as? String)?.hasSuffix("/numbers/p5") == true)
    for failure in failures {
      #expect(failure["message"] as? String == "this row is poison")
      #expect(failure["code"] as? String == "constraint")
      #expect(failure["attempt"] as? Int == 1)
      #expect((failure["failedAt"] as? String)?.hasSuffix("Z") == true)
    }
    let text = try BatchProgram.run("inspect", "job.batch", in: directory).output
    #expect(text.contains("failed       4"))
    #expect(text.contains("/numbers/p1999: this row is poison"))
  }

  @Test(arguments: [(3, 1.0), (100, 0.0019)])
  func `a run beyond its failure limit stops and can be resumed`(limit: Int, ratio: Double) throws {
    // One worker, so that chunks come in their order, and it is the last that is too much.
    try write(limit: limit, ratio: ratio, workers: 1)
    let first = try BatchProgram.run("run", "job.json", in: directory)
    #expect(first.status == 1)
    #expect(first.errors.contains("this row is poison; more identifiers have failed"))
    // What is corrected is done; what had failed stays failed.
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    let second = try BatchProgram.run("run", "job.json", in: directory)
    #expect(second.status == 4, "\(second.errors)")
    let failed = try BatchProgram(
      ["ids", "job.json", "--outcome", "failed", "--count"],
      in: directory
    )
    .wait()
    #expect(failed.output == "3\n")
    #expect(try changed() == 1997)
    // A finished job starts over, without the failures of the last run.
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM _batch_failure") == ["0"])
  }

  @Test func `the first failure stops a run without skip`() throws {
    try directory.write(JobText.update(), to: "job.json")
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 1)
    #expect(run.errors.contains("this row is poison"))
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM _batch_failure") == ["0"])
  }

  @Test(arguments: [
    ("n INTEGER NOT NULL", "NULL", "NOT NULL constraint failed: t.n"),
    ("n CONSTRAINT small CHECK (n < 50)", "77", "CHECK constraint failed: small (setting n)"),
    ("n CHECK (n < 50)", "77", "CHECK constraint failed: n < 50 (setting n)"),
    ("n UNIQUE", "-5", "UNIQUE constraint failed: t.n"),
    ("n INTEGER) STRICT", "'x'", "cannot store TEXT value in INTEGER column t.n"),
    (
      "n REFERENCES t (id)", "77",
      "FOREIGN KEY constraint failed (setting n): n must name a row of t"
    ),
    ("n", "abs(-9223372036854775807 - 1)", "integer overflow"),
  ])
  func `the error of a violated constraint names the identifier`(
    column: String,
    value: String,
    message: String
  ) throws {
    try TestDatabase.make(
      "constrained.db",
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, \(column)\(column.contains("STRICT") ? "" : ")")",
      """
      WITH c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60)
      INSERT INTO t SELECT i, \(column.contains("REFERENCES") ? "i" : "-i") FROM c
      """
    )
    let more: [String: Any] = [
      "database": ["path": "constrained.db", "foreignKeys": true], "chunk": ["size": 10],
      "source": ["entity": "t", "where": "id > 10"],
    ]
    let set = ["n": "iif(id = 33, \(value), n)"]
    try directory.write(JobText.update(set, adding: more), to: "job.json")
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 1)
    #expect(run.errors.contains("identifier 33: \(message)"), "\(run.errors)")
  }

  @Test func `the error of a referenced row names the referring table, and reasons are counted`()
    throws
  {
    try TestDatabase.make(
      "parents.db",
      in: directory,
      "CREATE TABLE parent (a TEXT, b INTEGER, note TEXT UNIQUE, PRIMARY KEY (a, b)) WITHOUT ROWID",
      "CREATE TABLE child (x TEXT, y INTEGER, FOREIGN KEY (x, y) REFERENCES parent)",
      "CREATE TABLE word (note REFERENCES parent (note))",
      "CREATE TABLE gone (x TEXT, y INTEGER, FOREIGN KEY (x, y) REFERENCES parent ON DELETE CASCADE)",
      """
      WITH c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60)
      INSERT INTO parent SELECT 'k', i, 'note ' || i FROM c
      """,
      "INSERT INTO child SELECT a, b FROM parent WHERE b % 10 = 0",
      "INSERT INTO word SELECT note FROM parent WHERE b IN (7, 20)",
      "INSERT INTO gone SELECT a, b FROM parent WHERE b < 5"
    )
    let job: [String: Any] = [
      "version": 1, "name": "purge", "database": ["path": "parents.db", "foreignKeys": true],
      "source": ["entity": "parent", "where": "b > 0"], "action": ["type": "delete"],
      "skip": ["limit": 50], "chunk": ["size": 25],
    ]
    try directory.write(
      String(decoding: JSONSerialization.data(withJSONObject: job), as: UTF8.self),
      to: "purge.json"
    )
    let run = try BatchProgram.run("run", "purge.json", in: directory)
    #expect(run.status == 4, "\(run.errors)")
    let reasons = try BatchProgram.run("ids", "purge.json", "--reasons", "--count", in: directory)
    let (child, word) = ("rows of child refer to it by x, y", "rows of word refer to it by note")
    let text = "constraint: FOREIGN KEY constraint failed: "
    #expect(
      reasons.output.split(separator: "\n") == [
        "5 \(text)\(child)", "1 \(text)\(child), \(word)", "1 \(text)\(word)",
      ],
      "\(reasons.output)"
    )
    #expect(run.output.contains(#/5 failed: +constraint: FOREIGN KEY constraint failed: rows of/#))
    #expect(run.output.contains("(first =k,10)"), "\(run.output)")
    let path = directory.file("parents.db")
    #expect(try TestDatabase.value(path, "SELECT count(*) FROM parent") == .integer(7))
    #expect(
      try TestDatabase.value(
        path,
        "SELECT count(*) FROM parent AS p WHERE NOT EXISTS (SELECT 1 FROM child WHERE y = p.b)"
          + " AND NOT EXISTS (SELECT 1 FROM word WHERE note = p.note)"
      ) == .integer(0)
    )
  }
}
