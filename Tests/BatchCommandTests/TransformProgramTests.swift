import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// What transform programs may do besides answering, and how that ends.
@Suite struct TransformProgramTests {
  private let job: TransformJob

  init() throws { job = try TransformJob() }

  /// The part of a script that reads a line's identifier into `id`.
  private static let identifier = #"id=${line#*'"$identifier":"'}; id=${id%%'"'*}"#

  /// Runs the job, and kills it after a time that no machine needs.
  private func runQuietly() throws -> BatchProgram.Result {
    let program = try BatchProgram(["run", "job.json", "--quiet"], in: job.directory)
    #expect(!program.send(SIGKILL, afterSeconds: 60), "the run does not end")
    return program.wait()
  }

  // MARK: Time and space

  @Test(arguments: [
    "exec 2>&-; exec sleep 100", "while :; do echo 'not yet' >&2; done", "yes >&2",
    "while :; do printf ' '; done", "exec <&-; exec sleep 100",
  ]) func `a program that does not answer is killed at its time limit, whatever else it does`(
    script: String
  ) throws {
    // None of them ever answers, so it does not matter how soon one has begun.
    try job.write("read -r line; \(script)", timeout: "300ms")
    let run = try runQuietly()
    #expect(run.status == 1)
    #expect(run.errors.contains("has answered 0 of 10 rows after 0.3 seconds"), "\(run.errors)")
  }

  @Test(arguments: [1, 2])
  func `a run starts at most as many programs as workers, and all rows pass through them`(
    workers: Int
  ) throws {
    try job.write(
      "echo $$ >> programs; while read -r row; do echo '{\"n\":1}'; done",
      adding: ["workers": workers, "chunk": ["size": 1]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "100 of 100")
    let programs = try String(contentsOfFile: job.directory.file("programs"), encoding: .utf8)
    #expect((1...workers).contains(Set(programs.split(separator: "\n")).count))
  }

  @Test func `an endless line of a program is not kept in memory`() throws {
    // One chunk, so that there is one such program.
    try job.write(
      "read -r line; exec tr '\\0' x </dev/zero",
      timeout: "1h",
      adding: ["workers": 1, "source": ["entity": "numbers", "where": "id <= 10"]]
    )
    let run = try BatchProgram.run("run", "job.json", "--json", in: job.directory)
    #expect(run.status == 1)
    let last = try #require(try JSONOutput.lines(run.output).last)
    #expect((last["error"] as? String)?.contains("has written 16 MB without a line feed") == true)
    // An array of 16 MB has room for 32.
    #expect(try #require(last["peakResidentBytes"] as? Int) < 96 << 20)
  }

  @Test func `a program that repeats the identifiers is not waited for after its answers`() throws {
    // What comes 100 ms after the answer would be an answer too many, if it were waited for.
    try job.write(
      """
      read -r line; sleep 0.3; echo '{"$identifier": "7", "n": 5}'; sleep 0.1; echo late
      """,
      adding: ["source": ["entity": "numbers", "where": "id = 7"]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "5 of 100")
    #expect(
      run.errors.contains(
        "]: it has written \"late\" beyond its answers, none of which is in doubt"
      ),
      "\(run.errors)"
    )
  }

  @Test func `a program that does not repeat identifiers is waited for a few milliseconds at most`()
    throws
  {
    try job.write(
      "read -r line; sleep 0.3; echo '{\"n\": 5}'; sleep 0.1; echo late",
      adding: ["source": ["entity": "numbers", "where": "id = 7"]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    // The answer was taken, and is in doubt.
    #expect(run.status == 1)
    #expect(run.errors.contains("more answers than there were rows: \"late\""), "\(run.errors)")
    #expect(try job.sum() == "5 of 100")
  }

  // MARK: More than was asked for

  @Test func `output after identified answers is reported and fails no row`() throws {
    try job.write(
      #"""
      while read -r line; do
        \#(Self.identifier)
        echo "{\"n\": 1, \"\$identifier\": \"$id\"}"
      done
      printf 'done\033[1m, and more'
      """#
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "100 of 100")
    #expect(run.errors.contains(#"it has written "done\u{1b}[1m, and more" beyond its answers"#))
  }

  @Test func `a program that repeats its answers is restarted without doubting any row`() throws {
    // Both in one write, so that they are read together.
    try job.write(
      #"""
      echo >> starts
      while read -r line; do
        \#(Self.identifier)
        answer="{\"n\": $id, \"\$identifier\": \"$id\"}"
        case $id in 30) printf '%s\n%s\n' "$answer" "$answer" ;; *) echo "$answer" ;; esac
      done
      """#,
      adding: ["workers": 1]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "5050 of 100")
    #expect(run.errors.contains("none of which is in doubt; it is replaced"), "\(run.errors)")
    #expect(try job.directory.read("starts").count == 2)
  }

  @Test func `no program is started for a finished run`() throws {
    try job.write(
      "echo >> starts; while read -r line; do echo '{\"n\": 1}'; done; echo the end",
      adding: ["workers": 1]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 1)
    #expect(run.errors.contains("more answers than there were rows: \"the end\""), "\(run.errors)")
    #expect(try job.sum() == "100 of 100")
    let second = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(second.status == 0, "\(second.errors)")
    #expect(try job.directory.read("starts") == [0x0a])
  }

  @Test func `a program that is given no row may write anything`() throws {
    try job.write(
      "echo ready; cat >/dev/null",
      adding: ["source": ["entity": "numbers", "where": "id < 0"]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 0, "\(run.errors)")
  }

  @Test func `the last line on standard error needs no line feed`() throws {
    try job.write("while read -r line; do echo '{\"n\": 1}'; done; printf 'all well' >&2")
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(run.errors.contains("]: all well\n"), "\(run.errors)")
  }

  // MARK: Another try

  @Test func `a program that asks for a retry is given its chunk again`() throws {
    try job.write(
      #"""
      echo $$ >> starts
      while read -r line; do
        case $line in *'"id":60,'*) echo >> tries ;; esac
        case $line in
          *'"id":60,'*)
            if test $(wc -l < tries) -lt 3
            then echo '{"$retry": "no answer", "n": 7}'
            else echo '{"n": 1}'
            fi ;;
          *) echo '{"n": 1}' ;;
        esac
      done
      """#,
      adding: ["workers": 1, "retry": ["limit": 2, "backoff": "1ms"]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "100 of 100")
    #expect(try job.directory.read("tries").count == 3)
    // It is in step, so it continues.
    #expect(try job.directory.read("starts").count { $0 == 0x0a } == 1)
  }

  @Test func `only the rows that a program postpones are given to it again`() throws {
    try job.write(
      #"""
      while read -r line; do
        echo "$line" >> asked
        case $line in
          *'"id":6,'* | *'"id":60,'*)
            if test $(grep -c "$line" asked) -lt 3
            then echo '{"$retry": "no answer"}'
            else echo '{"n": 1}'
            fi ;;
          *'"id":61,'*) echo '{"$retry": "never"}' ;;
          *) echo '{"n": 1}' ;;
        esac
      done
      """#,
      adding: [
        "workers": 1, "retry": ["limit": 2, "backoff": "1ms"], "skip": ["limit": 1],
      ]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 4, "\(run.errors)")
    #expect(try job.sum() == "99 of 100")
    #expect(try TestDatabase.texts(job.path, "SELECT id FROM numbers WHERE n = 0") == ["61"])
    let asked = String(decoding: try job.directory.read("asked"), as: UTF8.self)
    #expect(asked.split(separator: "\n").count == 100 + 3 * 2)
    let reasons = try BatchProgram.run(
      "ids",
      "job.json",
      "--outcome",
      "failed",
      "--reasons",
      in: job.directory
    )
    #expect(reasons.output.contains("61,retryLater,the command asks for a retry: never"))
  }

  @Test func `a program that postpones a row too often stops a run without skip`() throws {
    try job.write(
      """
      while read -r line; do
        case $line in *'"id":60,'*) echo '{"$retry": "away"}' ;; *) echo '{"n": 1}' ;; esac
      done
      """,
      adding: ["retry": ["limit": 1, "backoff": "1ms"]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 1)
    #expect(
      run.errors.contains("identifier 60: the command asks for a retry: away"),
      "\(run.errors)"
    )
    try job.write("while read -r line; do echo '{\"n\": 1}'; done")
    let second = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(second.status == 0, "\(second.errors)")
    #expect(try job.sum() == "100 of 100")
  }

  // MARK: Names and ends

  @Test func `columns with names reserved for commands are refused`() throws {
    try TestDatabase.make(
      in: job.directory,
      #"CREATE TABLE odd (id INTEGER PRIMARY KEY, "$identifier", "$error", "$retry", "$other")"#
    )
    for (columns, writes, place) in [
      (["id", "$identifier"], ["$other"], "action.columns[1]: "),
      (["id"], ["$identifier"], "action.writes[0]: "), (["id"], ["$error"], "action.writes[0]: "),
      (["$error"], ["$other", "$retry"], "action.writes[1]: "),
    ] {
      try job.write(
        command: ["cat"],
        columns: columns,
        writes: writes,
        adding: ["source": ["entity": "odd", "everything": true]]
      )
      let text = String(decoding: try job.directory.read("job.json"), as: UTF8.self)
      try Refusal.ofEveryCommand(
        text,
        in: job.directory,
        says: [place, "a command cannot be given a column named \"$"]
      )
    }
  }

  @Test func `a second Ctrl-C ends the programs as well`() throws {
    // A FIFO ends when nobody has it open any more.
    let fifo = job.directory.file("hold")
    #expect(mkfifo(fifo, 0o600) == 0)
    let descriptor = open(fifo, O_RDONLY | O_NONBLOCK)
    defer { close(descriptor) }
    func waitForBytes() -> Int {
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&wait, 1, 60_000) > 0 else { return -1 }
      var buffer = [UInt8](repeating: 0, count: 100)
      return read(descriptor, &buffer, buffer.count)
    }
    // The program, and its child, neither of which reads its input.
    try job.write(
      "exec 9>hold; read -r line; sleep 100 & echo ready >&9; sleep 100",
      timeout: "1h",
      adding: ["workers": 1]
    )
    let program = try BatchProgram(["run", "job.json"], in: job.directory)
    #expect(waitForBytes() == 6)
    program.send(SIGINT)
    while let line = program.nextErrorLine(), !line.contains("press Ctrl-C again to stop at once") {
    }
    _ = program.send(SIGINT, afterSeconds: 0.15)
    #expect(waitForBytes() == 0)
    #expect(program.wait().status == 3)
  }
}
