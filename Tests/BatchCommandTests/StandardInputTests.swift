import BatchTestSupport
import Foundation
import Testing

/// A job on standard input, as a one-off.
@Suite struct StandardInputTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(2500, in: directory)
  }

  private func batch(_ arguments: String..., input: String = "text") throws -> BatchProgram.Result {
    try BatchProgram(arguments, in: directory, input: input).wait()
  }

  @Test func `a job from standard input runs in the current folder and names its checkpoint`()
    throws
  {
    try directory.write(JobText.update(), to: "text")
    let result = try batch("run", "-")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.hasPrefix("job: completed, 2,500 of 2,500 done"))
    #expect(try directory.names().contains("job.batch"))
    #expect(try directory.names().allSatisfy { !$0.hasPrefix("-") && !$0.hasPrefix("standard") })
    #expect(try batch("status", "-").output.hasPrefix("job: completed, 2,500 of 2,500 done"))
    #expect(try batch("ids", "-", "--count").output == "2500\n")
    #expect(try batch("history", "-").output.contains("completed"))
  }

  @Test func `a job resumes from standard input or from a file of its name`() throws {
    let job = try JobText.update(
      ["n": "n + 1"],
      adding: ["skip": ["limit": 0], "chunk": ["size": 100]]
    )
    try directory.write(job, to: "text")
    let trigger = """
      CREATE TRIGGER refuse BEFORE UPDATE ON numbers WHEN old.id = 1500
      BEGIN SELECT RAISE(ABORT, 'not yet'); END
      """
    try TestDatabase.make(in: directory, trigger)
    #expect(try batch("run", "-").status == 1)
    try TestDatabase.make(in: directory, "DROP TRIGGER refuse")
    try directory.write(job, to: "job.json")
    #expect(try batch("plan", "job.json").output.contains("batch run resumes"))
    let resumed = try batch("run", "-")
    #expect(resumed.status == 0 && resumed.errors.contains("job: resumed"), "\(resumed.errors)")
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }

  @Test func `a problem of a job from standard input is reported with line and column`() throws {
    try directory.write("{\n  \"version\": 1,\n  \"nam\": \"x\"\n}", to: "text")
    let before = try directory.contents()
    let result = try batch("validate", "-")
    #expect(result.status == 2)
    #expect(result.errors.contains("error: standard input:3:3: nam: unknown key; did you mean"))
    #expect(result.errors.contains("error: standard input:1:1: name: missing"))
    try directory.write(" \n", to: "text")
    #expect(try batch("run", "-").errors.contains("standard input: there is no job; pipe a job"))
    try FileManager.default.copyItem(atPath: path, toPath: directory.file("database"))
    let database = try batch("run", "-", input: "database")
    #expect(database.errors.hasPrefix("error: standard input: this is an SQLite database"))
    try FileManager.default.removeItem(atPath: directory.file("database"))
    try directory.write("{\n  \"version\": 1,\n  \"nam\": \"x\"\n}", to: "text")
    #expect(try directory.changes(since: before) == [])
  }

  @Test func `a dry run prints the plan and writes nothing`() throws {
    try directory.write(JobText.update(), to: "job.json")
    let before = try directory.contents()
    for more in [[], ["--json"], ["--chunk-size", "7"]] {
      let plan = try BatchProgram(["plan", "job.json"] + more, in: directory).wait()
      let dry = try BatchProgram(["run", "job.json", "--dry-run"] + more, in: directory).wait()
      #expect(plan.status == 0 && dry.status == 0)
      // The time is measured.
      func steady(_ text: String) -> String {
        text.replacing(/time +about [^\n]*/, with: "").replacing(
          /"(estimated|least|most)Seconds" : [^,]*/,
          with: ""
        )
      }
      #expect(steady(dry.output) == steady(plan.output))
    }
    #expect(try directory.changes(since: before) == [])
    #expect(try batch("run", "job.json", "--dry-run", "--quiet", input: "job.json").status == 64)
  }
}
