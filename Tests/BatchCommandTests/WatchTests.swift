import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// `batch status --watch`: a run in progress, on a terminal and elsewhere.
@Suite struct WatchTests {
  private let directory: TemporaryDirectory
  private let run: BatchProgram

  /// Starts a run that is held.
  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(50, in: directory)
    try directory.write(JobText.update(adding: ["throttle": ["flagFile": "hold"]]), to: "job.json")
    try directory.write("", to: "hold")
    run = try BatchProgram(["run", "job.json", "--json"], in: directory)
    while let line = run.nextLine(), !line.contains(#""event":"throttled""#) {}
  }

  private func release() throws {
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    #expect(run.wait().status == 0)
  }

  @Test func `a watcher prints a line for each change and the summary at the end`() throws {
    let watch = try BatchProgram(["status", "job.json", "--watch"], in: directory)
    #expect(watch.nextLine() == "job  0%  0 of 50  held: flagFile: hold exists")
    try release()
    let lines = watch.wait().output.split(separator: "\n")
    #expect(lines.first?.hasPrefix("job: completed, 50 of 50 done") == true, "\(lines)")
    #expect(lines.contains { $0.hasPrefix("  started:   20") })
    #expect(lines.contains { $0.hasPrefix("  ended:     20") })
  }

  @Test func `a watcher that starts before the run waits for it`() throws {
    try release()
    try directory.write(JobText.update(adding: ["name": "later"]), to: "later.json")
    let watch = try BatchProgram(["status", "later.json", "--watch"], in: directory)
    #expect(try BatchProgram(["run", "later.json", "--quiet"], in: directory).wait().status == 0)
    let result = watch.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("50 of 50 done"), "\(result.output)")
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script")))
  func `a watcher on a terminal updates its lines in place`() throws {
    let command = "\(BatchProgram.path) status job.json --watch"
    let watch = try BatchProgram(
      ["-qec", command, "/dev/null"],
      of: "/usr/bin/script",
      in: directory,
      environment: ["TERM": "xterm"]
    )
    #expect(watch.nextLine()?.hasPrefix("job: held back, 0 of 50 done") == true)
    try release()
    let output = watch.wait().output
    #expect(output.contains("\u{1b}[K\r\n"))
    // What was drawn first is drawn over.
    #expect(output.contains(/\x{1b}\[[0-9]+A\rjob: completed, 50 of 50 done/), "\(output)")
  }
}
