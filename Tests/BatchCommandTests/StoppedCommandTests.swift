import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Stops of runs whose programs say nothing: each ends in five seconds, and its programs with it.
@Suite struct StoppedCommandTests {
  private let job: TransformJob

  init() throws { job = try TransformJob() }

  /// How programs say nothing after some answers.
  private static let silences = [
    "sleep 1000", "trap '' TERM INT HUP; sleep 1000; sleep 1000", "sleep 1000 & wait",
    "kill -STOP $$", "exec 2>&-; exec sleep 1000", "while :; do echo noise >&2; done",
    // What is written when no answer is due is an error of the program.
    "read -r line; while :; do printf ' '; sleep 0.01; done", "exec <&-; sleep 1000",
  ]

  /// A program that answers some rows, and then says nothing; its pages say which processes there were.
  private func write(_ silence: String, after answers: Int, adding more: [String: Any]) throws {
    try job.write(
      """
      echo $$ >> programs
      for i in $(seq \(answers)); do read -r line || exit; echo '{"n": 1}'; done
      \(silence)
      """,
      timeout: "1h",
      adding: more
    )
  }

  /// Checks that a run that was told to stop has stopped in time, and that the next one does the rest.
  private func expectStop(
    _ program: BatchProgram,
    since request: ContinuousClock.Instant,
    orBy signal: Int32? = nil,
    _ comment: Comment
  ) throws {
    #expect(!program.send(SIGKILL, afterSeconds: 20), comment)
    let run = program.wait()
    #expect(request.duration(to: .now) < .seconds(5), comment)
    // A signal that comes before the program listens ends it, before it has begun anything.
    let isEarly = signal.map { run.status == -$0 } == true && run.output + run.errors == ""
    #expect(run.status == 3 || isEarly, "\(run.errors) \(comment)")
    let programs =
      (try? String(contentsOfFile: job.directory.file("programs"), encoding: .utf8)) ?? ""
    for line in programs.split(separator: "\n") {
      let program = try #require(pid_t(line))
      // Killed processes are there until the system has collected them.
      let end = ContinuousClock.now + .seconds(10)
      while kill(-program, 0) == 0, ContinuousClock.now < end { sched_yield() }
      #expect(kill(-program, 0) != 0, comment)
    }
    let failed = try TestDatabase.texts(job.path, "SELECT count(*) FROM numbers WHERE n > 1")
    #expect(failed == ["0"], comment)
    try job.write("while read -r line; do echo '{\"n\": 1}'; done")
    let next = try BatchProgram.run("run", "job.json", "--json", in: job.directory)
    #expect(next.status == 0, "\(next.errors) \(comment)")
    let outcomes =
      try #require(try JSONOutput.lines(next.output).last)["outcomes"] as? [String: Int]
    #expect(outcomes?["succeeded"] == 100, comment)
    #expect(try job.sum() == "100 of 100", comment)
  }

  @Test(.timeLimit(.minutes(2)), arguments: silences.indices, [false, true])
  func `a signal ends a run whose program is silent`(silence: Int, skips: Bool) throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededGenerator(seed: seed)
    try write(
      Self.silences[silence],
      after: .random(in: 0...25, using: &random),
      adding: skips ? ["skip": ["limit": 100]] : [:]
    )
    let program = try BatchProgram(["run", "job.json"], in: job.directory)
    let delay = Double.random(in: 0...0.8, using: &random)
    let signal = [SIGTERM, SIGINT].randomElement(using: &random)!
    #expect(program.send(signal, afterSeconds: delay), "seed \(seed)")
    try expectStop(program, since: .now, orBy: signal, "seed \(seed)")
  }

  @Test(.timeLimit(.minutes(1)), arguments: ["cancel", "runtime"])
  func `a cancellation or a time limit ends a run whose program is silent`(stop: String) throws {
    try write(
      "trap '' TERM; sleep 1000 & sleep 1000",
      after: 15,
      adding: stop == "runtime" ? ["limits": ["runtime": "500ms"]] : ["skip": ["limit": 100]]
    )
    let program = try BatchProgram(["run", "job.json", "--json"], in: job.directory)
    _ = program.nextLine()
    var request = ContinuousClock.now
    if stop == "cancel" {
      let cancel = try BatchProgram.run("cancel", "job.json", in: job.directory)
      #expect(cancel.status == 0, "\(cancel.errors)")
    } else {
      request += .milliseconds(500)
    }
    try expectStop(program, since: request, "\(stop)")
  }

  @Test(.timeLimit(.minutes(1)), arguments: ["onStart", "onStop", "onCancel"])
  func `a silent hook ends with its run`(hook: String) throws {
    try job.write(
      "while read -r line; do sleep 0.02; echo '{\"n\": 1}'; done",
      adding: [
        "hooks": [
          hook: ["/bin/sh", "-c", "echo $$ >> programs; trap '' TERM; sleep 1000; sleep 1000"]
        ]
      ]
    )
    let program = try BatchProgram(["run", "job.json", "--json"], in: job.directory)
    _ = program.nextLine()
    let request = ContinuousClock.now
    if hook == "onCancel" {
      _ = try BatchProgram.run("cancel", "job.json", in: job.directory)
    } else {
      program.send(SIGTERM)
    }
    try expectStop(program, since: request, "\(hook)")
  }

  @Test(.timeLimit(.minutes(1)))
  func `progress and status name the program that a run waits for after two seconds`() throws {
    try write("sleep 1000", after: 15, adding: ["workers": 1])
    let program = try BatchProgram(["run", "job.json", "--json"], in: job.directory)
    var waiting: String?
    while waiting == nil, let line = program.nextLine() {
      waiting = try JSONOutput.object(line)["waiting"] as? String
    }
    let pattern = /compute\.sh \(process [0-9]+\), silent for [2-9] s/
    #expect(try pattern.wholeMatch(in: waiting ?? "") != nil, "\(waiting ?? "")")
    let status = try BatchProgram.run("status", "job.json", in: job.directory)
    #expect(status.output.contains("waiting for"), "\(status.output)")
    #expect(!status.output.contains("ETA"), "\(status.output)")
    let request = ContinuousClock.now
    program.send(SIGTERM)
    try expectStop(program, since: request, "")
    let after = try BatchProgram.run("status", "job.json", "--json", in: job.directory)
    #expect(try JSONOutput.object(after.output)["waiting"] is NSNull)
  }
}
