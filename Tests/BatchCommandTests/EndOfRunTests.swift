import BatchStore
import BatchTestSupport
import Foundation
import Testing

/// The steps after the last row: they may repeat, but rows change once.
@Suite(.timeLimit(.minutes(20))) struct EndOfRunTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  /// The values that rows have, each with the number of its rows.
  private func values() throws -> [String] {
    try TestDatabase.texts(path, "SELECT n || ': ' || count(*) FROM numbers GROUP BY n ORDER BY n")
  }

  /// Runs a command with its standard output redirected: `to` follows `>`.
  private func run(_ command: String, to output: String) throws -> Int32 {
    try BatchProgram.shell("\(command) \(output)", in: directory).status
  }

  @Test func `a run that is killed while its hook runs does not start over`() throws {
    // Opening a pipe waits for the other end.
    #expect(mkfifo(directory.file("begun"), 0o600) == 0)
    let hold = try NamedPipe("hold", in: directory)
    let hook = ["sh", "-c", "echo told >> told; [ -e quick ] || { : > begun; read end < hold; }"]
    try directory.write(JobText.update(adding: ["hooks": ["onFinish": hook]]), to: "job.json")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    _ = try #require(FileHandle(forReadingAtPath: directory.file("begun"))).readToEnd()
    program.send(SIGKILL)
    #expect(hold.release(andWaitFor: program).status == -SIGKILL)
    #expect(try values() == ["1: 100"])
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    #expect(try JSONOutput.object(status)["next"] as? String == "acknowledge")

    try directory.write("", to: "quick")
    let again = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(again.status == 0, "\(again.errors)")
    #expect(try JSONOutput.lines(again.output).last?["event"] as? String == "finished")
    #expect(try values() == ["1: 100"])
    #expect(try String(decoding: directory.read("told"), as: UTF8.self) == "told\ntold\n")
    // That run was acknowledged.
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try values() == ["2: 100"])
  }

  @Test(arguments: [">/dev/full", ">&-"], ["run job.json", "run job.json --json"])
  func `a summary that cannot be printed has its own status`(
    output: String,
    command: String
  ) throws {
    try directory.write(JobText.update(), to: "job.json")
    #expect(try run(command, to: output) == 6)
    #expect(try run(command, to: output) == 6)
    #expect(try values() == ["1: 100"])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    #expect(try values() == ["1: 100"])
  }

  @Test func `a retry that could not be told is not made once more`() throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id % 2 = 0
      BEGIN SELECT RAISE(ABORT, 'poison'); END
      """
    )
    try directory.write(JobText.update(adding: ["skip": ["limit": 50]]), to: "job.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    #expect(try run("retry-failed job.json", to: ">/dev/full") == 6)
    #expect(try values() == ["1: 100"])
    for _ in 0..<2 {
      #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 0)
      #expect(try values() == ["1: 100"])
    }
  }

  @Test func `a changed job does not get the end of the earlier run`() throws {
    try directory.write(JobText.update(), to: "job.json")
    #expect(try run("run job.json", to: ">/dev/full") == 6)
    try directory.write(JobText.update(["n": "n + 10"]), to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["the job has changed"])
    #expect(try BatchProgram.run("run", "job.json", "--fresh", in: directory).status == 0)
    #expect(try values() == ["11: 100"])
  }
}
