import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// Checkpoints that are damaged, or that are not of the job as it is now.
@Suite struct CheckpointTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(120, in: directory)
  }

  /// How many bytes lie between two that are damaged; none where many kills are wanted.
  private let step = KillLoop.kills >= 100 ? 1 : 17

  /// A job that can be stopped half-way: a row whose label is `stop` fails.
  ///
  /// The interval is too long for an extra record: the tests rely on the length of the file.
  private func job(
    where condition: String = "id > 0",
    adding more: [String: Any] = [:]
  ) throws -> String {
    try JobText.update(
      ["n": "CASE label WHEN 'stop' THEN json('{') ELSE n + 1 END"],
      where: condition,
      // With a pace and one worker, chunks are committed in their order.
      adding: [
        "chunk": ["size": 20], "checkpoint": ["interval": "1h"],
        "throttle": ["identifiersPerSecond": 1_000_000],
      ].merging(more) { $1 }
    )
  }

  /// Runs the job until it fails at row 111, with 100 rows done, and heals the row.
  private func failHalfWay(_ arguments: String...) throws {
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = 'stop' WHERE id = 111")
    let program = try BatchProgram(
      ["run", "job.json", "--workers", "1"] + arguments,
      in: directory
    )
    let result = program.wait()
    try #require(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("malformed JSON"))
    #expect(result.errors.contains("positions 100 to 119"))
    let without = arguments.contains("--fresh") ? " without --fresh" : ""
    #expect(result.errors.contains("the same command\(without) resumes the run"))
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = 'go' WHERE id = 111")
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(100))
  }

  private func expectExactlyOnce(_ location: SourceLocation = #_sourceLocation) throws {
    #expect(
      try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"],
      sourceLocation: location
    )
  }

  private func put(_ bytes: some Sequence<UInt8>, _ name: String = "job.batch") throws {
    try Data(Array(bytes)).write(to: URL(fileURLWithPath: directory.file(name)))
  }

  @Test func `a failed run resumes once its cause is removed`() throws {
    try directory.write(job(), to: "job.json")
    try failHalfWay()
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    let first = try #require(JSONOutput.lines(result.output).first)
    #expect(first["done"] as? Int == 100)
    try expectExactlyOnce()
  }

  @Test func `a checkpoint with any byte flipped is refused or does no harm`() throws {
    try directory.write(job(), to: "job.json")
    try failHalfWay()
    let whole = try directory.read("job.batch")
    let database = try directory.read("test.db")
    var survivors: [Int] = []
    for index in stride(from: 0, to: whole.count, by: step) {
      var damaged = whole
      damaged[index] ^= 1 << (index % 8)
      try put(damaged)
      if try !isRefused() {
        survivors.append(index)
        try expectExactlyOnce()
        try put(database, "test.db")
      }
    }
    // An incomplete last record counts as not written.
    try put(whole)
    let file = try IdentifierFile(opening: FilePath(directory.file("job.batch")))
    let records = try file.records().map { $0.payload.count + 16 }
    let last = file.snapshotByteCount + records.dropLast().reduce(0, +)
    #expect(survivors.allSatisfy { $0 >= last }, "\(survivors) of \(whole.count) bytes")
  }

  @Test func `a checkpoint truncated to any length is refused or does no harm`() throws {
    try directory.write(job(), to: "job.json")
    try failHalfWay()
    let whole = try directory.read("job.batch")
    let database = try directory.read("test.db")
    var firstSurvivor: Int?
    for length in stride(from: 0, to: whole.count, by: step) {
      try put(whole[..<length])
      if try isRefused() {
        #expect(firstSurvivor == nil, "\(length) bytes are refused and \(firstSurvivor ?? 0) not")
      } else {
        firstSurvivor = firstSurvivor ?? length
        try expectExactlyOnce()
        try put(database, "test.db")
      }
    }
    // What may be missing is progress, which the ledger in the database knows better.
    let complete = try #require(firstSurvivor)
    #expect(complete > whole.count / 2, "\(complete) of \(whole.count) bytes are enough")
  }

  /// Runs the job: whether it was refused with status 2, and everything left as it is.
  private func isRefused() throws -> Bool {
    let before = try directory.contents()
    let result = try BatchProgram.run("run", "job.json", in: directory)
    if result.status == 0 { return false }
    #expect(result.status == 2, "\(result.errors)")
    #expect(result.errors.contains("job.batch"))
    #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
    let changes = try directory.changes(since: before)
    #expect(changes == [])
    return true
  }

  @Test(arguments: ["", "this is no checkpoint, it is a letter", "{}"])
  func `a foreign file in place of the checkpoint is left unchanged`(text: String) throws {
    try directory.write(job(), to: "job.json")
    try directory.write(text, to: "job.batch")
    for command in ["run", "status", "ids"] {
      try Refusal.expect([command, "job.json"], in: directory, says: ["job.batch"])
    }
    try Refusal.expect(["inspect", "job.batch"], in: directory, says: ["job.batch"])
  }

  @Test func `a list of identifiers is refused as a checkpoint`() throws {
    try directory.write(job(), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let saved = try BatchProgram.run("ids", "job.json", "--output", "a.ids", in: directory)
    #expect(saved.status == 0)
    try put(directory.read("a.ids"))
    try Refusal.expect(["run", "job.json"], in: directory, says: ["not the checkpoint of a run"])
  }

  // MARK: Changed jobs

  @Test func `the error of a changed job says what differs`() throws {
    let by = ["by": ["type": "integer", "default": 1]]
    let start = try job(adding: ["parameters": by])
    try directory.write(start, to: "job.json")
    try failHalfWay()
    try TestDatabase.make(in: directory, "CREATE TABLE others AS SELECT * FROM numbers")
    let changed: [(String, String)] = [
      (try job(where: "id >= 1", adding: ["parameters": by]), "where"),
      (try JobText.update(["n": "n + 2"], where: "id > 0", adding: ["parameters": by]), "set"),
      (
        try JobText.update(["label": "n + 1"], where: "id > 0", adding: ["parameters": by]), "set"
      ),
      (try JobText.delete(where: "id > 0", adding: ["parameters": by]), "action"),
      (try job(adding: ["parameters": ["by": ["type": "integer", "default": 2]]]), "by"),
      (try job(adding: ["parameters": by, "name": "other"]), "job \"job\""),
      (
        try job(adding: [
          "parameters": by, "source": ["entity": "numbers", "where": "id > 0", "limit": 99],
        ]), "limit"
      ),
      (
        try job(adding: [
          "parameters": by, "source": ["entity": "numbers", "where": "id > 0", "orderBy": ["n"]],
        ]), "orderBy"
      ),
    ]
    for (text, difference) in changed {
      try directory.write(text, to: "job.json")
      try Refusal.expect(["run", "job.json"], in: directory, says: ["job.batch", difference])
    }
    try directory.write(start, to: "job.json")
    try Refusal.expect(
      ["run", "job.json", "--param", "by=3"],
      in: directory,
      says: ["parameter \"by\" was 1, is now 3"]
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try expectExactlyOnce()
  }

  @Test func `tuning may change between two runs`() throws {
    try directory.write(job(), to: "job.json")
    try failHalfWay()
    let tuned = try job(adding: [
      "chunk": ["size": 7], "workers": 3, "checkpoint": ["interval": "1ms"],
      "database": ["path": "test.db", "busyTimeout": "1s", "synchronous": "full"],
      "description": "tuned",
    ])
    try directory.write(tuned, to: "job.json")
    let result = try BatchProgram.run("run", "job.json", "--chunk-size", "3", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    try expectExactlyOnce()
  }

  @Test func `a changed schema is refused only if it concerns the run`() throws {
    try directory.write(job(), to: "job.json")
    try failHalfWay()
    try TestDatabase.make(in: directory, "ALTER TABLE numbers ADD COLUMN extra TEXT")
    try TestDatabase.make(in: directory, "ALTER TABLE numbers RENAME COLUMN n TO was")
    try Refusal.expect(
      ["run", "job.json"],
      in: directory,
      says: ["\"numbers\" has no column n any more"]
    )
    try TestDatabase.make(in: directory, "ALTER TABLE numbers RENAME COLUMN was TO n")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try expectExactlyOnce()
  }

  // MARK: Other databases

  @Test func `a backup taken during a run resumes exactly at its own progress`() throws {
    try directory.write(job(), to: "job.json")
    try failHalfWay()
    try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("backup.db"))'")
    #expect(
      try BatchProgram.run("run", "job.json", "--chunk-size", "10", in: directory).status == 0
    )
    try expectExactlyOnce()

    // The checkpoint says that all is done, and the store knows better.
    try put(directory.read("backup.db"), "test.db")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try expectExactlyOnce()
  }

  @Test func `a backup restored during a run resumes at its own progress`() throws {
    try directory.write(job(), to: "job.json")
    try failHalfWay()
    try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("backup.db"))'")
    // It continues for some chunks, and fails again.
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = 'stop' WHERE id = 118")
    let again = ["run", "job.json", "--chunk-size", "5", "--workers", "1"]
    #expect(try BatchProgram(again, in: directory).wait().status == 1)
    #expect(try TestDatabase.value(path, "SELECT sum(n) FROM numbers") == .integer(115))
    try put(directory.read("backup.db"), "test.db")
    let result = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try JSONOutput.lines(result.output).first?["done"] as? Int == 100)
    try expectExactlyOnce()
  }

  @Test func `another database and one without the ledger are refused`() throws {
    try directory.write(job(), to: "job.json")
    let untouched = try directory.read("test.db")
    try failHalfWay()
    let half = try directory.read("test.db")
    // As before, without an identity, so only the path tells that it is the same.
    try put(untouched, "test.db")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["job.batch"])
    // With its identity and without its ledger.
    try put(half, "test.db")
    try TestDatabase.make(in: directory, "DELETE FROM _batch_run")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["no ledger of this run"])
    try put(half, "test.db")
    // Another identity altogether.
    try TestDatabase.make(
      in: directory,
      "UPDATE _batch_store SET uuid = '00000000-0000-4000-8000-000000000000'"
    )
    try Refusal.expect(["run", "job.json"], in: directory, says: ["belongs to store"])
    try put(half, "test.db")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try expectExactlyOnce()
  }

  @Test func `a resumed run keeps the time of its first start`() throws {
    try TestDatabase.make(in: directory, "ALTER TABLE numbers ADD COLUMN at TEXT")
    let job = try JobText.update(
      ["at": ":at || ' ' || :run", "n": "CASE label WHEN 'stop' THEN json('{') ELSE n + 1 END"],
      adding: [
        "chunk": ["size": 20],
        "parameters": [
          "at": ["type": "timestamp", "default": "$runStartedAt"],
          "run": ["type": "text", "default": "$runID"],
        ],
      ]
    )
    try directory.write(job, to: "job.json")
    try failHalfWay()
    let first = try TestDatabase.texts(path, "SELECT DISTINCT at FROM numbers WHERE n = 1")
    // A second is the precision of the time, so it must have changed to show.
    let second = DispatchSemaphore(value: 0)
    let now = Date.now.timeIntervalSince1970
    _ = second.wait(wallTimeout: .now() + (now.rounded(.down) + 1.01 - now))
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT at FROM numbers") == first)
    try expectExactlyOnce()
  }

  @Test func `status shows the parameters needed to resume a run, except secrets`() throws {
    let declared: [String: Any] = [
      "by": ["type": "integer", "default": 2], "word": ["type": "text", "default": "x"],
      "token": ["type": "text", "secret": true],
    ]
    try directory.write(
      JobText.update(
        ["n": "n + :by + 0 * length(:word || :token)"],
        where: "id > 0",
        adding: ["chunk": ["size": 50], "parameters": declared]
      ),
      to: "job.json"
    )
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id = 110
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    let parameters = ["by=1", "word=it's", "token=hush"].flatMap { ["--param", $0] }
    #expect(try BatchProgram(["run", "job.json"] + parameters, in: directory).wait().status == 1)
    let status = try BatchProgram.run("status", "job.json", in: directory)
    let words =
      #"resumes the unfinished run, with --param by=1 --param token=… --param 'word=it'\''s'"#
    #expect(status.output.contains(words), "\(status.output)")
    #expect(!status.output.contains("hush"))
    let refused = try BatchProgram.run("run", "job.json", "--param", "token=hush", in: directory)
    #expect(refused.status == 2)
    #expect(refused.errors.contains("to resume it give --param by=1"), "\(refused.errors)")
    #expect(!refused.errors.contains("hush"))
  }
}
