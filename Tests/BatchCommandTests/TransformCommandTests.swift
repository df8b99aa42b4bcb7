import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Transforms by programs of any language, well-behaved and not, as a user runs them.
@Suite struct TransformCommandTests {
  private let job: TransformJob
  private var directory: TemporaryDirectory { job.directory }
  private var path: String { job.path }

  init() throws { job = try TransformJob() }

  @Test func `a plan does not call the command and reports what it cannot know`() throws {
    try job.write("touch called; while read -r row; do echo '{\"n\":1}'; done")
    let text = try BatchProgram.run("plan", "job.json", in: directory)
    #expect(text.status == 0, "\(text.errors)")
    #expect(text.output.contains("time      unknown: it depends on the command\n"))
    let expected = "the first 5, before the run; a plan does not call the command, which computes"
    #expect(text.output.contains("\(expected) the new values:\n"), "\(text.output)")
    let plan = try JSONOutput.object(
      BatchProgram.run("plan", "job.json", "--json", in: directory).output
    )
    #expect(plan["estimatedSeconds"] == nil || plan["estimatedSeconds"] is NSNull)
    let sample = try #require(plan["sample"] as? [[String: Any]])
    #expect(sample.count == 5)
    #expect(sample.allSatisfy { $0["after"] == nil || $0["after"] is NSNull })
    #expect(sample.allSatisfy { $0["before"] is [String: Any] })
    #expect(try !directory.names().contains("called"))
  }

  @Test func `a program gets each row and returns its changes`() throws {
    try job.write(
      #"""
      while read -r line; do
        id=${line#*'"id":'}; id=${id%%,*}
        echo "{\"n\": $((id * 2))}"
      done
      """#
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "10100 of 100")
    #expect(try TestDatabase.integrity(path) == ["ok"])
  }

  @Test func `a program sees the declared columns, the identifier, the run and the parameters`()
    throws
  {
    try TestDatabase.make(
      in: directory,
      "UPDATE numbers SET label = 'a\"\\' || char(10) || 'é' WHERE id = 7"
    )
    // It answers immediately, and notes its input until there is no more.
    try job.write(
      #"""
      echo "$BATCH_JOB $BATCH_PARAM_factor ${#BATCH_RUN} $(basename "$PWD")" >&2
      IFS= read -r line; printf '%s\n' "$line" >rows; echo '{"n": 1}'; cat >>rows
      """#,
      adding: [
        "parameters": ["factor": ["type": "integer", "default": 3]],
        "source": ["entity": "numbers", "where": "id = 7"],
      ]
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "1 of 100")
    let folder = URL(fileURLWithPath: directory.path).lastPathComponent
    #expect(run.errors.contains("]: job 3 36 \(folder)\n"), "\(run.errors)")
    #expect(run.errors.contains("compute.sh["))
    // All that it read is the row.
    let rows = String(decoding: try directory.read("rows"), as: UTF8.self)
    #expect(rows == #"{"$identifier":"7","id":7,"label":"a\"\\\né"}"# + "\n")
  }

  @Test func `the run and the identifier form an idempotency key for a program`() throws {
    try job.write(
      #"""
      while read -r line; do
        id=${line#*'"$identifier":"'}; id=${id%%'"'*}
        echo "{\"n\": 1, \"label\": \"$BATCH_RUN:$id\"}"
      done
      """#
    )
    try job.write(command: ["./compute.sh"], writes: ["n", "label"])
    let run = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    let last = try #require(try JSONOutput.lines(run.output).last)
    let name = try #require(last["run"] as? String)
    let labels = try TestDatabase.texts(path, "SELECT label FROM numbers ORDER BY id")
    #expect(labels == (1...100).map { "\(name):\($0)" })
  }

  @Test(arguments: [
    (#"{"n": 5}"#, "integer 5"),
    (#" { "n" : -9223372036854775808 } "#, "integer -9223372036854775808"),
    (#"{"n": 9223372036854775808}"#, "real 9.22337203685478e+18"), (#"{"n": 1.5e1}"#, "integer 15"),
    (#"{"n": true}"#, "integer 1"), (#"{"n": "5 \u00e9\ud83e\uddf5\n"}"#, "text 5 é🧵\n"),
    (#"{"n": {"$base64": true, "encoded": "AAH/"}}"#, "blob 0001FF"), (#"{"n": ""}"#, "text "),
    (#"{"n": 1, "n": 2}"#, "integer 2"), (#"{"$identifier": "1", "n": 3}"#, "integer 3"),
  ]) func `an answer may contain all values of an export`(answer: String, expected: String) throws {
    try directory.write(answer + "\n", to: "answer")
    try job.write(
      "while read -r line; do cat answer; done",
      adding: ["source": ["entity": "numbers", "where": "id = 1"]]
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    let value = try TestDatabase.texts(
      path,
      """
      SELECT typeof(n) || ' ' || CASE typeof(n) WHEN 'blob' THEN hex(n) ELSE n END
      FROM numbers WHERE id = 1
      """
    )
    #expect(value == [expected])
  }

  @Test(arguments: ["{}", "null", " { } "])
  func `an empty answer leaves the row unchanged`(answer: String) throws {
    try job.write("while read -r line; do echo '\(answer)'; done")
    let run = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    let last = try #require(try JSONOutput.lines(run.output).last)
    #expect((last["outcomes"] as? [String: Int])?["unchanged"] == 100)
    #expect(try job.sum() == "0 of 100")
  }

  /// Programs that do wrong at the last row of a chunk, and what is said of them.
  @Test(arguments: [
    ("exit 3", "exited with status 3 after"),
    ("kill -9 $$", "was ended by signal 9 after"),
    ("echo not JSON", #"is not a JSON object: "not JSON";"#),
    (#"printf '\033[2J%090d\n' 7"#, #"is not a JSON object: "\u{1b}[2J00000"#),
    ("echo '{\"n\": 1} {}'", "goes on after its end"),
    ("echo '{\"n\": [1]}'", "has an array"),
    ("echo '{\"n\": 01}'", "no JSON value"),
    ("echo '{\"n\": \"\\ud800\"}'", "half a character"),
    ("echo '{\"m\": 1}'", "unknown column \"m\""),
    ("echo '{\"label\": \"x\"}'", "unknown column \"label\""),
    ("echo '{\"$identifier\": \"59\", \"n\": 1}'", "is for identifier \"59\""),
    (
      "echo '{\"$identifier\": 60}'",
      #"a number where "$identifier" must be a string, which is "60""#
    ),
    ("echo '{\"$error\": null}'", #"has null where "$error" must be a string"#),
    (#"printf '{}\n{"n": 9}\n'"#, "more answers than there were rows"),
    (#"printf '{"n": 1}\npart'"#, "more answers than there were rows"),
    (#"printf '{"n": "\001"}\n'"#, "control character"), ("echo", #"is not a JSON object: "";"#),
    ("exec >&-; sleep 60", "closed its output"),
    (": no answer", "has answered 9 of 10 rows after"),
    ("echo 'because of this' >&2; exit 1", "it wrote \"because of this\""),
    ("printf 'no line feed' >&2; exit 1", "it wrote \"no line feed\""),
  ]) func `a faulty program fails only its chunk without skip`(
    wrong: String,
    message: String
  ) throws {
    try job.write(
      """
      while read -r line; do
        case $line in *'"id":60,'*) \(wrong) ;; *) echo '{"n": 1}' ;; esac
      done
      """,
      timeout: wrong.hasPrefix(":") ? "1s" : "20s"
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 1)
    #expect(run.errors.contains(message), "\(run.errors)")
    let outcome = try TestDatabase.texts(
      path,
      "SELECT count(*) FILTER (WHERE n NOT IN (0, 1)) || ' ' || (sum(n) % 10) FROM numbers"
    )
    #expect(outcome == ["0 0"])
    #expect(
      try TestDatabase.texts(path, "SELECT sum(n) FROM numbers WHERE id BETWEEN 51 AND 60") == ["0"]
    )
    // The corrected run continues.
    try job.write("while read -r line; do echo '{\"n\": 1}'; done")
    let second = try BatchProgram.run("run", "job.json", in: directory)
    #expect(second.status == 0, "\(second.errors)")
    #expect(try job.sum() == "100 of 100")
  }

  @Test(arguments: [
    "exit 3", "echo not JSON", "echo '{\"$error\": \"no such thing\"}'", #"printf '{}\n{}\n'"#,
    "echo '{\"n\": 99}'",
  ]) func `only the faulty rows of a program fail with skip`(wrong: String) throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER big BEFORE UPDATE ON numbers WHEN new.n > 50
      BEGIN SELECT RAISE(ABORT, 'too big'); END
      """
    )
    try job.write(
      """
      while read -r line; do
        case $line in *'"id":10,'*|*'"id":60,'*|*'"id":70,'*) \(wrong) ;; *) echo '{"n": 1}' ;; esac
      done
      """,
      adding: ["skip": ["limit": 3]]
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 4, "\(run.errors)")
    let failed = try BatchProgram(
      ["ids", "job.json", "--outcome", "failed", "--format", "key"],
      in: directory
    ).wait()
    #expect(failed.output == "10\n60\n70\n")
    #expect(try job.sum() == "97 of 100")
  }

  @Test func `answers that repeat the identifier cannot be mixed up`() throws {
    try job.write(
      #"""
      while read -r line; do
        id=${line#*'"id":'}; id=${id%%,*}
        echo "{\"\$identifier\": \"$id\", \"n\": 1}"
        case $id in 55) echo "{\"\$identifier\": \"$id\", \"n\": 9}" ;; esac
      done
      """#
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 1)
    // The surplus answer shows by its content, or by its number.
    #expect(
      run.errors.contains("the command's answer for identifier 56 is for identifier \"55\"")
        || run.errors.contains("more answers than there were rows"),
      "\(run.errors)"
    )
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE n = 9") == ["0"])
  }

  @Test(arguments: [
    "printf '{\"n\": 7}\\n'; while read -r line; do echo '{\"n\": 1}'; done",
    "while read -r line; do echo '{\"n\": 1}'; done; echo the end",
  ]) func `an answer without a row fails the run`(script: String) throws {
    try job.write(script)
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 1)
    #expect(run.errors.contains("more answers than there were rows"), "\(run.errors)")
  }

  @Test func `a program that does not end after its rows is killed`() throws {
    try job.write("while read -r line; do echo '{\"n\": 1}'; done; exec sleep 1000")
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "100 of 100")
  }

  @Test func `the error of a value that violates a constraint names the identifier`() throws {
    try TestDatabase.make(
      "checked.db",
      in: directory,
      "CREATE TABLE numbers (id INTEGER PRIMARY KEY, n CONSTRAINT small CHECK (n < 50), label)",
      "INSERT INTO numbers (id) VALUES (1), (2), (3)"
    )
    try job.write(
      #"""
      while read -r line; do
        case $line in *'"id":2,'*) echo '{"n": 77}' ;; *) echo '{"n": 1}' ;; esac
      done
      """#,
      adding: ["database": ["path": "checked.db"]]
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 1)
    #expect(
      run.errors.contains("identifier 2: CHECK constraint failed: small (setting n)"),
      "\(run.errors)"
    )
  }

  @Test func `a program's standard error is printed, prefixed and bounded`() throws {
    try job.write(
      """
      echo "ready" >&2
      while read -r line; do
        printf '%0999d\\n' 1 >&2
        echo '{"n": 1}'
      done
      """,
      adding: ["workers": 1]
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    let lines = run.errors.split(separator: "\n").filter { $0.hasPrefix("compute.sh[") }
    #expect(lines.first?.hasSuffix("]: ready") == true)
    #expect((60...70).contains(lines.count), "\(lines.count)")
    #expect(lines.last?.hasSuffix("]: " + String(repeating: "0", count: 998) + "1") == true)
    #expect(run.errors.contains("compute.sh: \(101 - lines.count) further lines are not shown\n"))
  }

  @Test func `a command that cannot be started is refused before any write`() throws {
    for (command, message) in [
      ("no-such-command-here", "there is no command \"no-such-command-here\""),
      ("./missing.sh", "there is no command \"./missing.sh\""),
      ("./plain.txt", "is not executable"), (".", "there is no command"),
    ] {
      try directory.write("text", to: "plain.txt")
      try job.write(command: [command])
      let job = String(decoding: try directory.read("job.json"), as: UTF8.self)
      try Refusal.ofEveryCommand(job, in: directory, says: [message, "action.command"])
    }
  }

  @Test func `a script without an interpreter is refused before any write`() throws {
    try directory.write("#!/no/such/interpreter\n", to: "lost.sh")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755],
      ofItemAtPath: directory.file("lost.sh")
    )
    try job.write(command: ["./lost.sh"])
    try Refusal.expect(["run", "job.json"], in: directory, says: ["cannot start the command"])
  }

  @Test func `columns that do not exist or cannot be written are refused`() throws {
    for (columns, writes, message) in [
      (["nope"], ["n"], "action.columns[0]: "), (["id"], ["nope"], "action.writes[0]: "),
      (["id"], ["id"], "identifies the rows and cannot be set"),
    ] {
      try job.write(command: ["cat"], columns: columns, writes: writes)
      let job = String(decoding: try directory.read("job.json"), as: UTF8.self)
      try Refusal.ofEveryCommand(job, in: directory, says: [message])
    }
  }

  @Test func `a handler that the program does not have is refused`() throws {
    let action: [String: Any] = [
      "type": "transform", "columns": ["id"], "writes": ["n"], "handler": "reprice",
    ]
    try Refusal.ofEveryCommand(
      JobText.update(adding: ["action": action]),
      in: directory,
      says: ["job.json:", "action.handler: there is no handler \"reprice\"; this program has none"]
    )
  }

  @Test func `a transform loses no change of another process`() throws {
    // Both add one to every row, each with different chunks.
    try job.write(
      #"""
      while read -r line; do
        n=${line#*'"n":'}; n=${n%\}}
        echo "{\"n\": $((n + 1))}"
      done
      """#.replacing("\\}", with: #"\}"#)
    )
    try job.write(command: ["./compute.sh"], columns: ["n"], adding: ["chunk": ["size": 3]])
    let other: [String: Any] = ["chunk": ["size": 7], "name": "other"]
    try directory.write(JobText.update(["n": "n + 1"], adding: other), to: "other.json")

    let program = try BatchProgram(["run", "job.json", "--json", "--quiet"], in: directory)
    var others = 0
    while program.isRunning {
      let run = try BatchProgram.run("run", "other.json", "--quiet", in: directory)
      #expect(run.status == 0, "\(run.errors)")
      others += 1
    }
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    let values = try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers")
    #expect(values == ["\(others + 1)"])
  }

  @Test func `Ctrl-C lets the programs finish their chunks`() throws {
    try job.write("while read -r line; do sleep 0.005; echo '{\"n\": 1}'; done")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    _ = program.nextLine()
    program.send(SIGINT)
    let stopped = program.wait()
    #expect(stopped.status == 3, "\(stopped.errors)")
    let second = try BatchProgram.run("run", "job.json", in: directory)
    #expect(second.status == 0, "\(second.errors)")
    #expect(try job.sum() == "100 of 100")
  }
}
