import BatchTestSupport
import Foundation
import Testing

/// What `batch run` does about an earlier run of the job: one of other work, and one that is done.
@Suite(.timeLimit(.minutes(5))) struct RepeatedRunTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  private func write(_ more: [String: Any] = [:], set: [String: String] = ["n": "n + :step"]) throws
  {
    let base: [String: Any] = [
      "parameters": ["step": ["type": "integer", "default": 1]], "chunk": ["size": 5],
    ]
    try directory.write(JobText.update(set, adding: base.merging(more) { $1 }), to: "job.json")
  }

  private var values: [String] {
    get throws { try TestDatabase.texts(path, "SELECT DISTINCT n - id FROM numbers ORDER BY 1") }
  }

  private func run(_ arguments: String..., expecting status: Int32 = 0) throws -> String {
    let result = try BatchProgram(["run", "job.json"] + arguments, in: directory).wait()
    #expect(result.status == status, "\(arguments): \(result.errors)\(result.output)")
    return result.errors + result.output
  }

  /// Leaves an unfinished run.
  private func leave(_ arguments: String...) throws {
    try write(["throttle": ["identifiersPerSecond": 0.001]])
    let program = try BatchProgram(["run", "job.json", "--json"] + arguments, in: directory)
    try program.wait(forEvent: "throttled")
    program.send(SIGKILL)
    _ = program.wait()
    try write()
  }

  @Test func `the command that a refusal names finishes the other run with its parameters`() throws
  {
    let before = try values
    try leave("--param", "step=10", "--run-id", "mon day")
    let refusal = try run("--param", "step=100", "--run-id", "tue", expecting: 2)
    let command = "batch run job.json --json --param step=10 --run-id 'mon day'"
    #expect(refusal.contains("finish it first: \(command) (--finish-first does)"), "\(refusal)")
    #expect(try run("--json", "--param", "step=10", "--run-id", "mon day").contains("resumed"))
    #expect(try values == before.map { "\(Int($0)! + 10)" })
  }

  @Test func `a run ID whose work was done with other parameters is told apart`() throws {
    try write()
    _ = try run("--param", "step=10", "--run-id", "mon")
    let before = try values
    #expect(try !run("--param", "step=10", "--run-id", "mon").contains("warning"))
    let other = try run("--param", "step=11", "--run-id", "mon")
    #expect(
      other.contains(
        "warning: the work of this run ID is done, but the run began with other parameters"
      ),
      "\(other)"
    )
    try write(set: ["n": "n * 2"])
    let job = try run("--param", "step=10", "--run-id", "mon")
    #expect(job.contains("warning: the work of this run ID is done, but"), "\(job)")
    #expect(try values == before)
  }

  @Test func `--finish-first finishes the other run with its own parameters, then does its own`()
    throws
  {
    let before = try values
    try leave("--param", "step=10", "--run-id", "mon")
    let output = try run("--param", "step=100", "--run-id", "tue", "--finish-first")
    #expect(output.contains("resumed, "), "\(output)")
    #expect(try values == before.map { "\(Int($0)! + 110)" })
    // Both are done: neither is done again.
    _ = try run("--param", "step=10", "--run-id", "mon", "--finish-first")
    _ = try run("--param", "step=100", "--run-id", "tue", "--finish-first")
    #expect(try values == before.map { "\(Int($0)! + 110)" })
    _ = try run("--finish-first", "--fresh", expecting: 64)
  }

  @Test func `--finish-first stops where the other run stops`() throws {
    try leave("--param", "step=10", "--run-id", "mon")
    try write(["limits": ["runtime": "1ms"], "throttle": ["identifiersPerSecond": 0.001]])
    let output = try run("--param", "step=100", "--run-id", "tue", "--finish-first", expecting: 3)
    #expect(output.contains("limits.runtime"), "\(output)")
    let history = try BatchProgram.run("history", "job.json", "--json", in: directory).output
    #expect(history.contains("\"mon\"") && !history.contains("\"tue\""), "\(history)")
  }

  private func onTerminal(_ arguments: String...) throws -> (status: Int32, rest: String) {
    try PseudoTerminal(["run", "job.json"] + arguments, in: directory).wait()
  }

  @Test func `on a terminal, a second run that would change its rows again needs --again`() throws {
    let before = try values
    try write()
    #expect(try onTerminal().status == 0)
    let refused = try onTerminal()
    #expect(refused.status == 2)
    let words = refused.rest.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(words.contains("ago, and this one would change its rows again"), "\(words)")
    #expect(words.contains("what it sets \"n\" to depends on \"n\"; add --again"), "\(words)")
    #expect(try values == before.map { "\(Int($0)! + 1)" })
    #expect(try onTerminal("--again").status == 0)
    // Nobody can answer a schedule.
    _ = try run()
    #expect(try values == before.map { "\(Int($0)! + 3)" })
    #expect(try onTerminal("--run-id", "mon").status == 0)
    #expect(try values == before.map { "\(Int($0)! + 4)" })
  }

  @Test(arguments: [["n": "7"], ["n": "id * 2"], ["n": "n + 1", "id": "id"]])
  func `a run that gives the same values again begins without a question`(set: [String: String])
    throws
  {
    guard set["id"] == nil else { return }
    try write(set: set)
    for _ in 0..<2 { #expect(try onTerminal().status == 0) }
  }
}
