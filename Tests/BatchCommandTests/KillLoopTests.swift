import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct KillLoopTests {
  private let directory: TemporaryDirectory
  private let tuning: [String: Any] = [
    "checkpoint": ["interval": "1ms"], "chunk": ["size": KillLoop.kills >= 100 ? 500 : 20],
  ]

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test func `killed updates change every row exactly once`() throws {
    let rows = KillLoop.rows(300_000)
    let path = try TestDatabase.makeNumbers(rows, in: directory)
    try directory.write(JobText.update(adding: tuning), to: "job.json")
    var loop = KillLoop("update", in: directory)
    try loop.run(rows: rows) { jobs in
      try count("numbers WHERE n <> \(jobs)", path) == 0
        && count("numbers", path) == rows && TestDatabase.integrity(path) == ["ok"]
    }
  }

  @Test func `killed updates of a text key change every row exactly once`() throws {
    let rows = KillLoop.rows(60_000, part: 50)
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (key TEXT PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0)",
      "INSERT INTO numbers (key) \(uuids(rows))"
    )
    try directory.write(JobText.update(adding: tuning), to: "job.json")
    var loop = KillLoop("update of a text key", in: directory)
    try loop.run(rows: rows) { jobs in
      try count("numbers WHERE n <> \(jobs)", path) == 0
        && count("numbers", path) == rows && TestDatabase.integrity(path) == ["ok"]
    }
  }

  @Test func `killed transforms change every row exactly once`() throws {
    let rows = KillLoop.rows(60_000)
    let path = try TestDatabase.makeNumbers(rows, in: directory)
    let script = #"while read -r l; do n=${l#*'"n":'}; echo "{\"n\":$((${n%?} + 1))}"; done"#
    let action: [String: Any] = [
      "type": "transform", "columns": ["n"], "writes": ["n"], "command": ["sh", "-c", script],
    ]
    let more = tuning.merging(["action": action]) { $1 }
    try directory.write(JobText.update(adding: more), to: "job.json")
    var loop = KillLoop("transform", in: directory)
    try loop.run(rows: rows) { jobs in
      try count("numbers WHERE n <> \(jobs)", path) == 0
        && count("numbers", path) == rows && TestDatabase.integrity(path) == ["ok"]
    }
  }

  @Test func `killed deletes lose no row and archive none twice`() throws {
    let rows = KillLoop.rows(300_000)
    let path = try TestDatabase.makeNumbers(rows, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE archive (id INTEGER, n INTEGER, label TEXT)"
    )
    try expectDeletes("delete with archive", rows, path)
  }

  @Test func `killed deletes of a composite key lose no row and archive none twice`() throws {
    let rows = KillLoop.rows(60_000, part: 50)
    let path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE numbers (a BLOB, b INTEGER, label TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID
      """,
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(rows))
      INSERT INTO numbers SELECT CAST('part ' || i % 100 AS BLOB), i, 'label ' || i FROM c
      """,
      "CREATE TABLE archive (a BLOB, b INTEGER, label TEXT)"
    )
    try expectDeletes("delete of a composite key with archive", rows, path)
  }

  private func expectDeletes(_ name: String, _ rows: Int, _ path: String) throws {
    try TestDatabase.make(in: directory, "CREATE TABLE original AS SELECT * FROM numbers")
    try directory.write(JobText.delete(archive: "archive", adding: tuning), to: "job.json")
    var loop = KillLoop(name, in: directory)
    try loop.run(rows: rows) { _ in
      let isRight =
        try count("numbers", path) == 0 && count("archive", path) == rows
        && count("(SELECT * FROM original EXCEPT SELECT * FROM archive)", path) == 0
        && TestDatabase.integrity(path) == ["ok"]
      try TestDatabase.make(
        in: directory,
        "INSERT INTO numbers SELECT * FROM archive",
        "DELETE FROM archive"
      )
      return isRight
    }
  }

  @Test(arguments: ["INTEGER PRIMARY KEY", "TEXT PRIMARY KEY"])
  func `killed updates lose no failed identifier and record none twice`(key: String) throws {
    // The same time allows many more integers.
    let rows = KillLoop.rows(60_000, part: key.hasPrefix("TEXT") ? 25 : 10)
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (id \(key), i INTEGER, n INTEGER NOT NULL DEFAULT 0)",
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(rows))
      INSERT INTO numbers (id, i) SELECT i, i FROM c
      """,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.i % 500 = 77
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    let poisoned = try count("numbers WHERE i % 500 = 77", path)
    let more = tuning.merging(["skip": ["limit": poisoned]]) { $1 }
    try directory.write(JobText.update(adding: more), to: "job.json")
    var loop = KillLoop("update with poison, \(key)", in: directory, failing: true)
    try loop.run(rows: rows) { jobs in
      let failed = try BatchProgram(
        ["ids", "job.json", "--outcome", "failed", "--format", "key"],
        in: directory
      ).wait()
      // What the finished run's file says is what the store says.
      let file = try BatchProgram(
        ["ids", "job.batch", "--outcome", "failed", "--format", "key"],
        in: directory
      ).wait()
      let expected = try TestDatabase.texts(
        path,
        "SELECT id FROM numbers WHERE i % 500 = 77 ORDER BY i"
      )
      return try count("numbers WHERE n <> \(jobs) * (i % 500 <> 77)", path) == 0
        && failed.output == expected.map { "\(key.hasPrefix("TEXT") ? "=" : "")\($0)\n" }.joined()
        && file.output == failed.output
        && count("_batch_failure", path) == expected.count
        && TestDatabase.integrity(path) == ["ok"]
    }
  }

  @Test func `killed retries change each failed row once and keep exactly the remaining failures`()
    throws
  {
    let rows = KillLoop.rows(30_000)
    let path = try TestDatabase.makeNumbers(rows, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE poison (modulus INTEGER)",
      """
      CREATE TRIGGER refuse BEFORE UPDATE ON numbers
      WHEN EXISTS (SELECT 1 FROM poison WHERE old.id % modulus = 0)
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    let more = tuning.merging(["skip": ["limit": rows], "chunk": ["size": 20]]) { $1 }
    try directory.write(JobText.update(adding: more), to: "job.json")
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var random = SeededGenerator(seed: seed)
    // No longer than the retries take, or most would not be hit.
    let longest = KillLoop.kills >= 100 ? 0.1 : 0.02
    var kills = 0
    var jobs = 0
    while kills < KillLoop.kills {
      // Every second row fails, and is retried when only every sixth would.
      try TestDatabase.make(
        in: directory,
        "DELETE FROM poison",
        "INSERT INTO poison VALUES (2)"
      )
      let run = try BatchProgram.run("run", "job.json", in: directory)
      try #require(run.status == 4, "seed \(seed): \(run.errors)")
      jobs += 1
      try TestDatabase.make(in: directory, "UPDATE poison SET modulus = 6")
      for round in 1... {
        let program = try BatchProgram(["retry-failed", "job.json", "--json"], in: directory)
        // After its first event it is working, and the kill may come at any moment.
        let hasBegun = program.nextLine() != nil
        let seconds = Double.random(in: 0...1, using: &random) * longest
        if hasBegun, round <= 8, program.send(SIGKILL, afterSeconds: seconds) {
          kills += program.wait().status == -SIGKILL ? 1 : 0
        } else {
          let result = program.wait()
          try #require(result.status == 4, "seed \(seed): \(result.errors)")
          break
        }
        let changed = try count("numbers WHERE n = \(jobs)", path)
        let failed = try count("_batch_failure", path)
        #expect(try changed + failed == rows && count("numbers WHERE n > \(jobs)", path) == 0)
      }
      #expect(try count("numbers WHERE n <> \(jobs)", path) == rows / 6, "seed \(seed)")
      for source in ["job.json", "job.batch"] {
        let failed = try BatchProgram(
          ["ids", source, "--outcome", "failed", "--format", "key"],
          in: directory
        ).wait()
        let expected = stride(from: 6, through: rows, by: 6).map { "\($0)\n" }.joined()
        #expect(failed.output == expected, "\(source), seed \(seed)")
      }
      try TestDatabase.make(in: directory, "DELETE FROM poison", "UPDATE numbers SET n = \(jobs)")
    }
    print("kill-loop retry-failed: \(kills) kills, \(jobs) jobs of \(rows) rows, seed \(seed)")
  }

  /// The rows of the table, of a join, and of a query whose rows are not found by their keys.
  @Test(
    arguments: [
      ("ndjson", ["entity": "numbers"]), ("csv", ["entity": "numbers"]),
      (
        "csv",
        [
          "query": "SELECT a.id, b.label FROM numbers a JOIN numbers b ON b.id = a.id",
          "key": ["id"],
        ]
      ),
      ("ndjson", ["query": "SELECT label || '/' || n AS name, id FROM numbers", "key": ["name"]]),
    ] as [(String, [String: any Sendable])]
  )
  func `killed exports equal an undisturbed one`(
    format: String,
    source: [String: any Sendable]
  ) throws {
    let rows = KillLoop.rows(300_000, part: 50)
    try TestDatabase.makeNumbers(rows, in: directory)
    try directory.write(
      JobText.export(to: "alone", format: format, adding: ["source": source]),
      to: "alone.json"
    )
    #expect(try BatchProgram.run("run", "alone.json", in: directory).status == 0)
    let alone = try Data(contentsOf: URL(fileURLWithPath: directory.file("alone")))
    let lines = alone.split(separator: 0x0a).count
    #expect(lines == rows + (format == "csv" ? 1 : 0) && alone.last == 0x0a)
    let job = try JobText.export(
      to: "killed",
      format: format,
      adding: tuning.merging(["source": source]) { $1 }
    )
    try directory.write(job, to: "job.json")
    let what = source["query"] == nil ? "export" : "export of a query"
    var loop = KillLoop("\(what) to \(format)", in: directory)
    try loop.run(rows: rows) { _ in
      let partial = try directory.names().filter { $0.hasSuffix(".partial") }
      let killed = try Data(contentsOf: URL(fileURLWithPath: directory.file("killed")))
      return killed == alone && partial == []
    }
  }

  // MARK: Tables

  private func count(_ table: String, _ path: String) throws -> Int {
    guard case .integer(let count) = try TestDatabase.value(path, "SELECT count(*) FROM \(table)")
    else { return -1 }
    return Int(count)
  }

  /// A query for random UUIDs in their text form.
  private func uuids(_ count: Int) -> String {
    """
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(count)),
      h(x) AS (SELECT upper(hex(randomblob(16))) FROM c)
    SELECT substr(x, 1, 8) || '-' || substr(x, 9, 4) || '-' || substr(x, 13, 4) || '-'
      || substr(x, 17, 4) || '-' || substr(x, 21) FROM h
    """
  }
}
