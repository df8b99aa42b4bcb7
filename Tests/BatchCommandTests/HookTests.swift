import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Programs and reports that describe how a run went.
@Suite struct HookTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(50, in: directory)
    // A script that appends its variables to a file, and writes a message.
    try script(
      "tell.sh",
      """
      echo "$BATCH_HOOK $BATCH_STATE $BATCH_DONE/$BATCH_TOTAL $BATCH_FAILED $1 [$BATCH_ERROR]" >> told
      test ${#BATCH_RUN} = 36 && test "$BATCH_JOB" = job && test -n "$BATCH_CHECKPOINT" || echo bad >> told
      echo "heard of $BATCH_HOOK" >&2
      echo "this is dropped"
      """
    )
  }

  private func script(_ name: String, _ text: String) throws {
    try directory.write("#!/bin/sh\n\(text)\n", to: name)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755],
      ofItemAtPath: directory.file(name)
    )
  }

  private func write(
    _ hooks: [String: [String]],
    set: [String: String] = ["n": "n + 1"],
    adding more: [String: Any] = [:]
  ) throws {
    let adding: [String: Any] = ["hooks": hooks, "chunk": ["size": 10]]
    try directory.write(JobText.update(set, adding: adding.merging(more) { $1 }), to: "job.json")
  }

  private static let all = [
    "onStart": ["./tell.sh", "a b; c"], "onFinish": ["./tell.sh", "d"],
    "onFailure": ["./tell.sh", "e"], "onThrottle": ["./tell.sh", "f"],
  ]

  private func told() throws -> [String] {
    String(decoding: try directory.read("told"), as: UTF8.self).split(separator: "\n").map(
      String.init
    )
  }

  @Test func `a complete run calls its hooks at start and end`() throws {
    try write(Self.all)
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(
      try told() == ["onStart running 0/50 0 a b; c []", "onFinish completed 50/50 0 d []"]
    )
    #expect(run.errors.contains("]: heard of onFinish\n"), "\(run.errors)")
    #expect(run.errors.contains("hooks.onStart["))
    #expect(!run.errors.contains("dropped") && !run.output.contains("dropped"))
  }

  @Test func `a failing run calls its hooks with the reason, and again when it restarts`() throws {
    try write(Self.all, set: ["n": "iif(id = 35, abs(-9223372036854775807 - 1), 1)"])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 1)
    let told = try told()
    #expect(told.count == 2)
    #expect(told[0].hasPrefix("onStart running 0/50"))
    #expect(
      told[1].hasPrefix("onFailure failed ") && told[1].contains("identifier 35: integer overflow")
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 1)
    #expect(
      try self.told().map { $0.prefix { $0 != " " } } == [
        "onStart", "onFailure", "onStart", "onFailure",
      ]
    )
  }

  @Test func `a held run calls its hook and does not wait for it`() throws {
    // The hook lets the run continue.
    try script("release.sh", "./tell.sh f; rm hold")
    var hooks = Self.all
    hooks["onThrottle"] = ["./release.sh"]
    try write(hooks, adding: ["throttle": ["flagFile": "hold"]])
    try directory.write("", to: "hold")
    let run = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(
      try told() == [
        "onStart running 0/50 0 a b; c []", "onThrottle throttled 0/50 0 f []",
        "onFinish completed 50/50 0 d []",
      ]
    )
    let messages = try JSONOutput.lines(run.output).filter { $0["event"] as? String == "message" }
    #expect(messages.count == 3)
  }

  // MARK: Other ends

  private static let ends = ["onStop", "onCancel", "onRefuse", "onKill", "onStart"]

  /// A job that notifies of every end with its status, whose run is held by the file `hold`.
  private func writeEnds(adding more: [String: Any] = [:]) throws {
    try script(
      "end.sh",
      """
      echo "$BATCH_HOOK $BATCH_STATE $BATCH_EXIT_STATUS $BATCH_DONE/$BATCH_TOTAL [$BATCH_STOP_REASON]" >> told
      """
    )
    let hooks = Dictionary(uniqueKeysWithValues: Self.ends.map { ($0, ["./end.sh"]) })
    let adding: [String: Any] = ["throttle": ["flagFile": "hold"]]
    try write(hooks, adding: adding.merging(more) { $1 })
    try directory.write("", to: "hold")
  }

  private func startHeld() throws -> BatchProgram {
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    while let line = program.nextLine(), !line.contains(#""event":"throttled""#) {}
    return program
  }

  @Test func `a hook is called when a run is stopped, cancelled or killed`() throws {
    try writeEnds()
    let stopped = try startHeld()
    stopped.send(SIGTERM)
    #expect(stopped.wait().status == 3)
    let killed = try startHeld()
    killed.send(SIGKILL)
    _ = killed.wait()
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory).output
    #expect(try JSONOutput.object(status)["wasKilled"] as? Bool == true)
    #expect(try JSONOutput.object(status)["endedAt"] is NSNull)
    let text = try BatchProgram.run("status", "job.json", in: directory).output
    #expect(text.contains("job: killed, resumable, ") && text.contains("  last heartbeat: 20"))
    let cancelled = try startHeld()
    #expect(try BatchProgram.run("cancel", "job.json", in: directory).status == 0)
    #expect(cancelled.wait().status == 3)
    #expect(
      try told() == [
        "onStart running  0/50 []", "onStop stopped 3 0/50 []", "onStart running  0/50 []",
        "onKill killed  0/50 []", "onStart running  0/50 []",
        "onCancel stopped 3 0/50 [batch cancel]",
      ]
    )
  }

  @Test func `a hook gets the exit status when a run is refused`() throws {
    try writeEnds()
    let alive = try startHeld()
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 5)
    alive.send(SIGKILL)
    _ = alive.wait()
    try writeEnds(adding: ["source": ["entity": "none", "everything": true]])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 2)
    #expect(
      try told().dropFirst() == ["onRefuse refused 5 0/50 []", "onRefuse refused 2 0/50 []"]
    )
  }

  @Test func `a hook is called when a run cannot begin, with absolute paths`() throws {
    try writeEnds(adding: ["database": ["path": "test.db", "busyTimeout": "1ms"]])
    try script("end.sh", "echo \"$BATCH_HOOK $BATCH_EXIT_STATUS $BATCH_CHECKPOINT\" >> told")
    let other = try Connection(path: path)
    try other.execute("BEGIN IMMEDIATE")
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 1, "\(run.errors)")
    #expect(try told() == ["onRefuse 1 \(directory.file("job.batch"))"])
  }

  @Test func `a run stops outside its daily window and resumes within it`() throws {
    let other = Calendar.current.component(.hour, from: .now) + 12
    let hours = String(format: "%02d:00-%02d:00", other % 24, (other + 1) % 24)
    try writeEnds(adding: ["throttle": ["window": ["hours": hours, "otherwise": "stop"]]])
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 3, "\(run.errors)")
    #expect(run.output.contains("reason:     throttle.window: it is not \(hours)"))
    #expect(try told().last == "onStop stopped 3 0/50 [throttle.window: it is not \(hours)]")
    try writeEnds(adding: ["throttle": ["window": ["hours": "00:00-24:00", "otherwise": "stop"]]])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
  }

  @Test func `a hook that writes much output is not blocked`() throws {
    try script("much.sh", "head -c 1000000 /dev/zero; yes | head -c 1000000 >&2; echo end >> told")
    try write(["onFinish": ["./much.sh"]])
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0)
    #expect(try told() == ["end"])
    #expect(run.errors.utf8.count < 20_000)
  }

  @Test func `a hook whose program is missing or not executable is refused`() throws {
    try directory.write("text", to: "plain.txt")
    for (command, message) in [
      ("./missing.sh", "there is no command"), ("./plain.txt", "is not executable"),
    ] {
      try write(["onFailure": [command]])
      let job = String(decoding: try directory.read("job.json"), as: UTF8.self)
      try Refusal.ofEveryCommand(job, in: directory, says: ["hooks.onFailure", message])
    }
  }

  // MARK: Reports

  private func writeReport(_ file: String, adding more: [String: Any] = [:]) throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER IF NOT EXISTS poison BEFORE UPDATE ON numbers WHEN old.id IN (5, 42)
      BEGIN SELECT RAISE(ABORT, '<b>&"poison"</b>'); END
      """
    )
    let adding: [String: Any] = [
      "report": ["path": file], "skip": ["limit": 9], "description": "for <you> & me",
    ]
    try directory.write(JobText.update(adding: adding.merging(more) { $1 }), to: "job.json")
  }

  @Test func `a JSON report has the summary and the failed identifiers`() throws {
    try writeReport("run.json")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    let text = String(decoding: try directory.read("run.json"), as: UTF8.self)
    let report = try JSONOutput.object(text)
    let status = try JSONOutput.object(
      BatchProgram.run("status", "job.json", "--json", in: directory).output
    )
    let summary = try #require(report["summary"] as? [String: Any])
    for key in ["job", "run", "state", "total", "done", "chunks"] {
      #expect("\(summary[key] ?? "")" == "\(status[key] ?? "")", "\(key)")
    }
    let failures = try #require(report["failures"] as? [[String: Any]])
    #expect(failures.map { $0["identifier"] as? String } == ["5", "42"])
    #expect(failures[0]["message"] as? String == "<b>&\"poison\"</b>")
    #expect(failures[0]["attempt"] as? Int == 1)
    // The next run replaces it.
    try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    #expect(try BatchProgram.run("retry-failed", "job.json", in: directory).status == 0)
    let second = try JSONOutput.object(
      String(decoding: try directory.read("run.json"), as: UTF8.self)
    )
    #expect((second["failures"] as? [Any])?.isEmpty == true)
  }

  @Test func `an HTML report has the summary and the failures and escapes markup`() throws {
    try writeReport("run.HTML")
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    let page = String(decoding: try directory.read("run.HTML"), as: UTF8.self)
    #expect(page.contains("<p>for &lt;you&gt; &amp; me</p>"))
    #expect(
      page.contains("<td>42</td><td>&lt;b&gt;&amp;&quot;poison&quot;&lt;/b&gt;</td><td>1</td>")
    )
    #expect(
      page.contains("<title>job: completed with failures</title>") && page.contains("50 of 50 done")
    )
    #expect(!page.contains("<b>"))
  }

  @Test func `the report of a failed run contains the error`() throws {
    try writeReport("run.html", adding: ["skip": ["limit": 0]])
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 1)
    let page = String(decoding: try directory.read("run.html"), as: UTF8.self)
    #expect(page.contains("failed") && page.contains("identifier 5: "))
  }

  @Test func `a report does not replace a file that is not a report`() throws {
    try directory.write("mine", to: "run.html")
    try writeReport("run.html")
    let job = String(decoding: try directory.read("job.json"), as: UTF8.self)
    try Refusal.ofEveryCommand(job, in: directory, says: ["report.path", "is not a run's report"])
    #expect(String(decoding: try directory.read("run.html"), as: UTF8.self) == "mine")
  }
}
