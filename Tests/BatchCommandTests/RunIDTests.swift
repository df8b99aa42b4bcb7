import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Work with an ID is done at most once, whoever requests it however late.
@Suite(.timeLimit(.minutes(20))) struct RunIDTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  private func sum() throws -> Int {
    try TestDatabase.texts(path, "SELECT sum(n) FROM numbers").first.flatMap { Int($0) } ?? -1
  }

  private func run(_ id: String?, _ more: String...) throws -> BatchProgram.Result {
    let arguments = ["run", "job.json"] + (id.map { ["--run-id", $0] } ?? []) + more
    return try BatchProgram(arguments, in: directory).wait()
  }

  @Test func `each run ID is done once, even without its checkpoint or given by the environment`()
    throws
  {
    try directory.write(JobText.update(), to: "job.json")
    for (index, id) in ["mon", "tue", "wed"].enumerated() {
      #expect(try run(id).status == 0)
      #expect(try sum() == 100 * (index + 1))
    }
    try FileManager.default.removeItem(atPath: directory.file("job.batch"))
    for id in ["mon", "wed", "tue", "mon"] {
      let result = try run(id, "--json")
      #expect(result.status == 0)
      let last = try #require(JSONOutput.lines(result.output).last)
      #expect(last["event"] as? String == "finished" && last["runID"] as? String == id)
      #expect(last["done"] as? Int == 100)
    }
    let variables = ["BATCH_RUN_ID": "tue"]
    #expect(
      try BatchProgram.run("run", "job.json", in: directory, environment: variables).status == 0
    )
    #expect(try sum() == 300)
    // Work without an ID is new each time, and forgets none.
    #expect(try run(nil).status == 0)
    #expect(try run("mon").status == 0)
    #expect(try sum() == 400)
  }

  @Test func `a run ID known only to the checkpoint is refused and not done twice`() throws {
    try directory.write(JobText.update(), to: "job.json")
    #expect(try run("mon").status == 0)
    #expect(try run("tue").status == 0)
    try TestDatabase.make(
      in: directory,
      "DELETE FROM _batch_run",
      "DELETE FROM _batch_ledger"
    )
    // A backup of the time before looks the same, so that nothing can be told to be done either.
    for id in ["mon", "tue"] {
      try Refusal.expect(
        ["run", "job.json", "--run-id", id],
        in: directory,
        says: ["run \"\(id)\" is done, but the database does not know it", "--fresh"]
      )
    }
    #expect(try sum() == 200)
  }

  @Test func `an invalid run ID is refused`() throws {
    try directory.write(JobText.update(), to: "job.json")
    for id in ["", String(repeating: "x", count: 201), "a\u{7}b"] {
      try Refusal.expect(["run", "job.json", "--run-id", id], in: directory, says: ["run ID"])
    }
  }

  @Test func `run IDs are forgotten after the time that the job says`() throws {
    let more: [String: Any] = ["checkpoint": ["keepRunIDs": "1h"]]
    try directory.write(JobText.update(adding: more), to: "job.json")
    #expect(try run("mon").status == 0)
    #expect(try run("tue").status == 0)
    #expect(try run("mon").status == 0)
    #expect(try sum() == 200)
    #expect(try BatchProgram.run("cleanup", "job.json", in: directory).status == 0)
    #expect(
      try TestDatabase.texts(path, "SELECT run_id FROM _batch_run ORDER BY 1") == ["mon", "tue"]
    )
    try TestDatabase.make(in: directory, "UPDATE _batch_run SET ended_at = '2020-01-01T00:00:00Z'")
    #expect(try BatchProgram.run("cleanup", "job.json", in: directory).status == 0)
    #expect(try TestDatabase.texts(path, "SELECT run_id FROM _batch_run") == [])
  }
}
