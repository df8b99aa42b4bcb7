import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Checkpoint and database of different times: the store is the judge of what is done.
@Suite(.timeLimit(.minutes(20))) struct RestoredDatabaseTests {
  private static let total = 300
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(Self.total, in: directory)
    // With an identity from the beginning, like a database that was processed before.
    try directory.write(JobText.update(["label": "'x'"], adding: ["name": "before"]), to: "b.json")
    #expect(try run("b.json").status == 0)
  }

  private func values() throws -> [String] {
    try TestDatabase.texts(path, "SELECT n || ': ' || count(*) FROM numbers GROUP BY n ORDER BY n")
  }

  private func write(_ more: [String: Any] = [:]) throws {
    var adding: [String: Any] = ["chunk": ["size": 10], "checkpoint": ["interval": "1ms"]]
    adding.merge(more) { $1 }
    try directory.write(JobText.update(adding: adding), to: "job.json")
  }

  @discardableResult
  private func run(_ arguments: String...) throws -> BatchProgram.Result {
    try BatchProgram(["run"] + (arguments.isEmpty ? ["job.json"] : arguments), in: directory).wait()
  }

  /// Kills a run that has made some progress.
  private func beginAndKill(_ arguments: String...) throws {
    try write(["throttle": ["identifiersPerSecond": 100]])
    let program = try BatchProgram(["run", "job.json", "--json"] + arguments, in: directory)
    try program.wait(forEvent: "throttled")
    program.send(SIGKILL)
    #expect(program.wait().status == -SIGKILL)
    try write()
  }

  /// Makes three rows refuse changes.
  private func poison() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id % 100 = 0
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
  }

  private func backUp() throws {
    try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("backup.db"))'")
  }

  private func restore() throws {
    for end in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + end) }
    #expect(rename(directory.file("backup.db"), path) == 0)
  }

  /// Ends a run so that its end is not acknowledged.
  private func runUntold(_ arguments: String = "") throws {
    let result = try BatchProgram.shell("run job.json \(arguments) >/dev/full", in: directory)
    #expect(result.status == 6)
  }

  private func expectNext(_ next: String, _ arguments: String...) throws {
    let plan = try BatchProgram(["plan", "job.json", "--json"] + arguments, in: directory).wait()
    #expect(try JSONOutput.object(plan.output)["next"] as? String == next)
  }

  @Test(arguments: [false, true], [nil, "mon"])
  func `a run resumes from the progress of the restored database`(
    isTold: Bool,
    id: String?
  ) throws {
    let option = id.map { ["--run-id", $0] } ?? []
    try write(["throttle": ["identifiersPerSecond": 100]])
    let program = try BatchProgram(["run", "job.json", "--json"] + option, in: directory)
    try program.wait(forEvent: "throttled")
    program.send(SIGKILL)
    _ = program.wait()
    try write()
    try backUp()
    if isTold {
      #expect(try BatchProgram(["run", "job.json"] + option, in: directory).wait().status == 0)
    } else {
      try runUntold(option.joined(separator: " "))
    }
    #expect(try values() == ["1: \(Self.total)"])
    try restore()
    #expect(try values().count == 2)
    let again = try BatchProgram(["run", "job.json"] + option, in: directory).wait()
    #expect(again.status == 0, "\(again.errors)")
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `the end of a run is not reported for a restored database that does not know it`()
    throws
  {
    try write()
    try backUp()
    try runUntold()
    try restore()
    try expectNext("refuse")
    let refused = try run()
    #expect(refused.status == 2)
    #expect(refused.errors.contains("the database does not know it"))
    #expect(try run("job.json", "--fresh").status == 0)
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `an acknowledged run starts over on a database restored from before it`() throws {
    try write()
    try backUp()
    #expect(try run().status == 0)
    try restore()
    #expect(try run().status == 0)
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `work does not count as done because of a checkpoint alone`() throws {
    try write()
    try backUp()
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    try restore()
    try expectNext("refuse", "--run-id", "mon")
    let refused = try run("job.json", "--run-id", "mon")
    #expect(refused.status == 2)
    #expect(refused.errors.contains("run \"mon\" is done, but the database does not know it"))
    #expect(try run("job.json", "--run-id", "mon", "--fresh").status == 0)
    for _ in 0..<2 { #expect(try run("job.json", "--run-id", "mon").status == 0) }
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test(arguments: [
    "rm -f test.db-wal test.db-shm; mv backup.db test.db",
    """
    python3 -c "import sqlite3; o = sqlite3.connect; o('backup.db').backup(o('test.db'))"
    """,
  ])
  func `a database that is restored during a hook is not reported as complete`(
    restore: String
  ) throws {
    try beginAndKill()
    try backUp()
    let hook = ["sh", "-c", "[ -e quiet ] || { \(restore); }"]
    try write(["hooks": ["onFinish": hook]])
    let result = try run()
    #expect(result.status == 1)
    #expect(try values().count == 2)
    try directory.write("", to: "quiet")
    let again = try run()
    #expect(again.status == 0, "\(again.errors)")
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test(arguments: [0, 1])
  func `a checkpoint of a run that the database has forgotten is refused`(chunks: Int) throws {
    try beginAndKill()
    let early = try directory.read("job.batch")
    #expect(try run().status == 0)
    #expect(try run().status == 0)
    #expect(try values() == ["2: \(Self.total)"])
    // As if it had no record of progress yet, too: the records follow the list.
    let file = directory.file("job.batch")
    try Data(early).write(to: URL(fileURLWithPath: file))
    if chunks == 0 { try TestDatabase.make(in: directory, "DELETE FROM _batch_ledger") }
    let refused = try run()
    #expect(refused.status == 2, "\(refused.errors)")
    #expect(try values() == ["2: \(Self.total)"])
  }

  @Test func `a ledger that contradicts the end of its run is refused`() throws {
    try write()
    #expect(try run().status == 0)
    try TestDatabase.make(in: directory, "DELETE FROM _batch_ledger")
    let refused = try run()
    #expect(refused.status == 2)
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `a refused fresh run leaves the unfinished one unchanged`() throws {
    try beginAndKill("--run-id", "mon")
    try directory.write(JobText.update(["nowhere": "1"]), to: "job.json")
    #expect(try run("job.json", "--fresh").status == 2)
    try write()
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test(arguments: [false, true])
  func `a fresh run with a used ID starts over and counts from then on`(
    losesCheckpoint: Bool
  ) throws {
    try beginAndKill("--run-id", "mon")
    if losesCheckpoint { try FileManager.default.removeItem(atPath: directory.file("job.batch")) }
    try expectNext(losesCheckpoint ? "refuse" : "resume", "--run-id", "mon")
    #expect(try run("job.json", "--fresh", "--run-id", "mon").status == 0)
    let once = try values()
    #expect(once.count == 2 && once[0].hasPrefix("1:") && once[1].hasPrefix("2:"))
    for more in [[], ["--fresh"]] {
      let again = ["run", "job.json", "--run-id", "mon"] + more
      #expect(try BatchProgram(again, in: directory).wait().status == 0)
      #expect(try values() == once)
    }
  }

  @Test func `other work begins only once the end of the last run was reported`() throws {
    try write()
    try runUntold("--run-id mon")
    let refused = try BatchProgram.shell("run job.json --run-id tue >/dev/full", in: directory)
    #expect(refused.status == 2)
    #expect(refused.errors.contains("nothing was started"))
    #expect(try values() == ["1: \(Self.total)"])
    for _ in 0..<2 { #expect(try run("job.json", "--run-id", "tue").status == 0) }
    #expect(try values() == ["2: \(Self.total)"])
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    #expect(try values() == ["2: \(Self.total)"])
  }

  @Test func `other work begins if the checkpoint of a finished run is lost`() throws {
    try write()
    try runUntold("--run-id mon")
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    #expect(try run("job.json", "--run-id", "tue").status == 0)
    #expect(try values() == ["2: \(Self.total)"])
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    #expect(try values() == ["2: \(Self.total)"])
    #expect(try run().status == 0)
    #expect(try values() == ["3: \(Self.total)"])
  }

  @Test func `work whose run ID has expired can be done again`() throws {
    try write(["checkpoint": ["keepRunIDs": "1h"]])
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    try TestDatabase.make(in: directory, "UPDATE _batch_run SET ended_at = '2020-01-01T00:00:00Z'")
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    #expect(try values() == ["2: \(Self.total)"])
  }

  @Test func `a killed retry is completed by the ID of its run`() throws {
    try write(["skip": ["limit": 10]])
    try poison()
    #expect(try run("job.json", "--run-id", "mon").status == 4)
    // Held while it tries them again.
    let hold = try NamedPipe("hold", in: directory)
    try write(["skip": ["limit": 10], "hooks": ["onStart": ["sh", "-c", "read end < hold"]]])
    let retry = try BatchProgram(["retry-failed", "job.json", "--json"], in: directory)
    try retry.wait(forEvent: "retryingFailures")
    retry.send(SIGKILL)
    #expect(hold.release(andWaitFor: retry).status == -SIGKILL)
    try write(["skip": ["limit": 10]])
    #expect(try run("job.json", "--run-id", "tue").status == 2)
    #expect(try run("job.json", "--run-id", "mon").status == 4)
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    let last = try run("job.json", "--run-id", "tue")
    #expect(last.status == 0, "\(last.errors)")
    #expect(try values() == ["1: 3", "2: 297"])
  }

  @Test func `status compares the job with the run`() throws {
    try beginAndKill()
    try directory.write(JobText.update(["n": "n + 2"]), to: "job.json")
    let status = try BatchProgram(["status", "job.json", "--json"], in: directory).wait()
    #expect(try JSONOutput.object(status.output)["next"] as? String == "refuse")
  }

  @Test func `a journal left by a killed process is rolled back before the database is read`()
    throws
  {
    // The rollback journal before any change of all rows was committed.
    let more: [String: Any] = [
      "database": ["path": "test.db", "journalMode": "keep"],
      "checkpoint": ["list": "store", "interval": "1ms"],
    ]
    try TestDatabase.make(in: directory, "PRAGMA journal_mode = DELETE")
    try write(more)
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    _ = program.nextLine()
    program.send(SIGKILL)
    _ = program.wait()
    do {
      let connection = try Connection(path: path)
      try connection.execute("PRAGMA cache_size = 1")
      try connection.execute("BEGIN")
      try connection.execute("UPDATE numbers SET label = hex(randomblob(2000))")
      for end in ["", "-journal"] {
        try Data(directory.read("test.db\(end)"))
          .write(to: URL(fileURLWithPath: directory.file("hot.db\(end)")))
      }
      try connection.execute("ROLLBACK")
    }
    for end in ["", "-journal"] { #expect(rename(directory.file("hot.db\(end)"), path + end) == 0) }
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    let again = try run()
    #expect(again.status == 0, "\(again.errors)")
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `cleanup keeps the ID of a finished run that was set aside`() throws {
    try write()
    try runUntold("--run-id mon")
    #expect(try run("job.json", "--fresh", "--run-id", "tue").status == 0)
    #expect(try values() == ["2: \(Self.total)"])
    #expect(try BatchProgram(["cleanup", "job.json"], in: directory).wait().status == 0)
    for more in [[], ["--fresh"]] {
      let again = ["run", "job.json", "--run-id", "mon"] + more
      #expect(try BatchProgram(again, in: directory).wait().status == 0)
    }
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    #expect(try values() == ["2: \(Self.total)"])
  }

  @Test(arguments: [false, true])
  func `half-restored work does not count as done because of a later run`(
    hasID: Bool
  ) throws {
    try beginAndKill("--run-id", "mon")
    try backUp()
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    let later = ["run", "job.json"] + (hasID ? ["--run-id", "tue"] : [])
    #expect(try BatchProgram(later, in: directory).wait().status == 0)
    try restore()
    try expectNext("refuse", "--run-id", "mon")
    let refused = try run("job.json", "--run-id", "mon")
    #expect(refused.status == 2)
    #expect(refused.errors.contains("unfinished run \"mon\""))
    #expect(try run("job.json", "--fresh", "--run-id", "mon").status == 0)
    let most = try TestDatabase.texts(path, "SELECT max(n) FROM numbers WHERE n > 0")
    #expect(try most == ["2"] && values().count == 2)
  }

  @Test func `a retry reports that the restored database has only a part of the run`() throws {
    try beginAndKill("--run-id", "mon")
    try backUp()
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    try restore()
    let retry = try BatchProgram(["retry-failed", "job.json"], in: directory).wait()
    #expect(retry.status == 2 && retry.errors.contains("the run is unfinished"), "\(retry.errors)")
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test(arguments: ["", ">/dev/full"])
  func `failures that a restored backup contains again are reported and can be retried`(
    output: String
  ) throws {
    try write(["skip": ["limit": 10]])
    try poison()
    #expect(try run("job.json", "--run-id", "mon").status == 4)
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    try backUp()
    let retry = try BatchProgram.shell("retry-failed job.json \(output)", in: directory)
    #expect(retry.status == (output.isEmpty ? 0 : 6))
    #expect(try values() == ["1: \(Self.total)"])
    try restore()
    #expect(try run("job.json", "--run-id", "mon").status == 4)
    #expect(try values() == ["0: 3", "1: \(Self.total - 3)"])
    #expect(try BatchProgram(["retry-failed", "job.json"], in: directory).wait().status == 0)
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `a retry without failures leaves the end of a run acknowledged`() throws {
    try write()
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    #expect(try BatchProgram(["retry-failed", "job.json"], in: directory).wait().status == 0)
    for count in 2...4 {
      #expect(try run().status == 0)
      #expect(try values() == ["\(count): \(Self.total)"])
    }
  }

  @Test func `run IDs are compared by their bytes`() throws {
    try write()
    for (index, id) in ["e\u{301}", "\u{e9}"].enumerated() {
      #expect(try run("job.json", "--run-id", id).status == 0)
      #expect(try values() == ["\(index + 1): \(Self.total)"])
    }
    let variables = ["BATCH_RUN_ID": ""]
    #expect(
      try BatchProgram.run("run", "job.json", in: directory, environment: variables).status == 2
    )
  }

  @Test func `a database file with two names is refused`() throws {
    try write()
    #expect(link(path, directory.file("other.db")) == 0)
    let refused = try run()
    #expect(refused.status == 2)
    #expect(refused.errors.contains("2 names"))
    #expect(try values() == ["0: \(Self.total)"])
  }

  @Test func `status says that a run would be refused`() throws {
    try directory.write(JobText.export(to: "out.ndjson"), to: "job.json")
    try directory.write("mine", to: "out.ndjson")
    try Refusal.expect(["plan", "job.json"], in: directory, says: ["this job did not make it"])
    try write()
    #expect(try run().status == 0)
    try directory.write(JobText.update(["nowhere": "1"]), to: "job.json")
    let status = try BatchProgram(["status", "job.json", "--json"], in: directory).wait()
    #expect(try JSONOutput.object(status.output)["next"] as? String == "refuse")
  }

  @Test func `status compares given parameters, and otherwise the rest of the job`() throws {
    let more: [String: Any] = [
      "parameters": ["k": ["type": "integer"]], "throttle": ["identifiersPerSecond": 100],
      "chunk": ["size": 10], "checkpoint": ["interval": "1ms"],
    ]
    try directory.write(JobText.update(["n": "n + :k"], adding: more), to: "job.json")
    let program = try BatchProgram(["run", "job.json", "--json", "--param", "k=1"], in: directory)
    try program.wait(forEvent: "throttled")
    program.send(SIGKILL)
    _ = program.wait()
    try expectNext("resume", "--param", "k=1")
    try expectNext("refuse", "--param", "k=2")
    func next() throws -> String? {
      let status = try BatchProgram(["status", "job.json", "--json"], in: directory).wait()
      return try JSONOutput.object(status.output)["next"] as? String
    }
    #expect(try next() == "resume")
    try directory.write(JobText.update(["n": "n + 2 * :k"], adding: more), to: "job.json")
    #expect(try next() == "refuse")
  }

  @Test func `a run ID that the database knows is answered whatever else is unknown`() throws {
    try write()
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    try backUp()
    try runUntold("--run-id tue")
    try restore()
    #expect(try run("job.json", "--run-id", "mon").status == 0)
    let refused = try run("job.json", "--run-id", "tue")
    #expect(refused.status == 2)
    #expect(refused.errors.contains("run \"tue\" is finished according to the checkpoint"))
    #expect(try values() == ["1: \(Self.total)"])
  }

  @Test func `a retry without failures reports an unacknowledged end`() throws {
    try write()
    try runUntold()
    #expect(try BatchProgram(["retry-failed", "job.json"], in: directory).wait().status == 0)
    #expect(try run().status == 0)
    #expect(try values() == ["2: \(Self.total)"])
  }

  @Test func `status recognizes a retry that was killed before it had begun`() throws {
    try write()
    #expect(try run().status == 0)
    let run = try TestDatabase.texts(path, "SELECT run FROM _batch_run WHERE job = 'job'")
    try directory.write("retry-failed \(#require(run.first))", to: "job.batch.lock")
    try expectNext("acknowledge")
    #expect(try self.run().status == 0)
    #expect(try values() == ["1: \(Self.total)"])
    try expectNext("begin")
  }
}
