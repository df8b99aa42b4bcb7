#if PostgreSQL
import BatchPipeline
import BatchPostgres
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Transforms on PostgreSQL, as a user runs them.
@Suite(.timeLimit(.minutes(5))) struct SharedTransformTests {
  /// Answers each row with `n` plus one.
  private static let addOne = #"""
    while read -r line; do
      n=${line#*'"n":'}; n=${n%%[,\}]*}
      echo "{\"n\": $((n + 1))}"
    done
    """#

  /// A transform of `t` by a shell script.
  private static func write(
    _ job: SharedJob,
    _ script: String = addOne,
    columns: [String] = ["n"],
    writes: [String] = ["n"],
    adding more: [String: Any] = [:]
  ) throws {
    try job.directory.write("#!/bin/sh\n\(script)\n", to: "compute.sh")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755],
      ofItemAtPath: job.directory.file("compute.sh")
    )
    let action: [String: Any] = [
      "type": "transform", "columns": columns, "writes": writes, "command": ["./compute.sh"],
      "timeout": "20s",
    ]
    try job.writeJob(["action": action].merging(more) { $1 })
  }

  @Test func `validate and plan check a transform without calling its command`() throws {
    let job = try SharedJob(rows: 1_000)
    try Self.write(job, "touch called\n\(Self.addOne)", columns: ["id", "n"])
    let valid = try job.batch("validate", "job.json")
    #expect(valid.output == "job: valid (transform of t)\n", "\(valid.errors)")
    let plan = try JSONOutput.object(job.batch("plan", "job.json", "--json").output)
    #expect(plan["matches"] as? Int == 1_000)
    let sample = try #require((plan["sample"] as? [[String: Any]])?.first)
    #expect(sample["before"] as? [String: Int] == ["id": 1, "n": 0])
    #expect(sample["after"] == nil)
    let apply = try #require((plan["sql"] as? [String: Any])?["apply"] as? String)
    #expect(apply.hasPrefix("SELECT ") && apply.contains("; UPDATE "), "\(apply)")
    #expect(try !job.directory.names().contains("called"))
    #expect(try job.counts() == ["0 x 1000"])
  }

  @Test func `the error of a missing column, script or right names it`() throws {
    let job = try SharedJob(
      rows: 1,
      "ALTER TABLE t ADD twice int GENERATED ALWAYS AS (n * 2) STORED"
    )
    func expect(_ words: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
      let result = try job.batch("run", "job.json")
      #expect(result.status == 2, "\(result.errors)", sourceLocation: sourceLocation)
      #expect(result.errors.contains(words), "\(result.errors)", sourceLocation: sourceLocation)
    }
    try Self.write(job, columns: ["m"])
    try expect("has no attribute \"m\"")
    try Self.write(job, writes: ["twice"])
    try expect("\"twice\"")
    try Self.write(job, writes: ["id"])
    try expect("\"id\"")
    try Self.write(job)
    try FileManager.default.removeItem(atPath: job.directory.file("compute.sh"))
    try expect("compute.sh")
    let role = "r\(job.database.name)"
    try job.database.run(
      "CREATE ROLE \(role) LOGIN; GRANT SELECT ON t TO \(role); GRANT CREATE ON SCHEMA public TO \(role)"
    )
    try Self.write(job, adding: ["database": ["url": job.url(role: role)]])
    try expect("have it granted UPDATE")
    try job.database.run("GRANT UPDATE (n) ON t TO \(role)")
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 1"])
    try job.database.run("DROP OWNED BY \(role); DROP ROLE \(role)")
  }

  @Test func `a transform passes values in both directions without loss`() throws {
    let job = try SharedJob(
      rows: 2,
      """
      ALTER TABLE t ADD price numeric, ADD flag bool, ADD ratio float8, ADD raw bytea, ADD name text,
        ADD tags text[], ADD at timestamptz, ADD detail jsonb;
      UPDATE t SET price = 12345678901234567890.123456789, flag = true, ratio = 0.1, raw = '\\x00ff', name = 'a"é',
        tags = '{x,NULL}', detail = '{"a": 1.50}' WHERE id = 1;
      UPDATE t SET price = 'NaN', ratio = 'NaN' WHERE id = 2;
      """
    )
    // Each row comes back unchanged except for its identifier.
    try Self.write(
      job,
      #"while IFS= read -r line; do printf '%s\n' "$line" >>rows; printf '%s\n' "$line"; done"#,
      columns: ["price", "flag", "ratio", "raw", "name", "tags", "detail"],
      writes: ["price", "flag", "ratio", "raw", "name", "tags", "detail", "n"],
      adding: ["workers": 1]
    )
    let columns = "price, flag, ratio, raw, name, tags, detail"
    let digest = "SELECT md5(string_agg(ROW(\(columns))::text, ' ' ORDER BY id)) FROM t"
    let before = try job.database.text(digest)
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    let rows = String(decoding: try job.directory.read("rows"), as: UTF8.self)
    #expect(
      rows.split(separator: "\n").first == #"""
        {"$identifier":"1","price":12345678901234567890.123456789,"flag":true,"ratio":0.1,\#
        "raw":{"$base64":true,"encoded":"AP8="},"name":"a\"é","tags":"{x,NULL}","detail":"{\"a\": 1.50}"}
        """#,
      "\(rows)"
    )
    #expect(rows.contains(#""price":"NaN","flag":null,"ratio":"NaN","#), "\(rows)")
    #expect(try job.database.text(digest) == before)
  }

  @Test
  func `rows that the program refuses are skipped and listed, and postponed ones are retried`()
    throws
  {
    let job = try SharedJob(rows: 300)
    try Self.write(
      job,
      #"""
      while read -r line; do
        id=${line#*'"$identifier":"'}; id=${id%%'"'*}
        case $id in
        7) echo '{"$error": "no seven"}' ;;
        250) if [ -e once ]; then echo '{"n": 1}'; else touch once; echo '{"$retry": "later"}'; fi ;;
        9) echo null ;;
        *) echo '{"n": 1}' ;;
        esac
      done
      """#,
      adding: ["skip": ["limit": 5], "retry": ["backoff": "10ms"]]
    )
    let result = try job.start().wait()
    #expect(result.status == 4, "\(result.errors)")
    #expect(try job.counts() == ["0 x 2", "1 x 298"])
    let reasons = try job.batch("ids", "job.json", "--outcome", "failed", "--reasons").output
    #expect(reasons.contains("7,handlerFailed,"), "\(reasons)")
    #expect(reasons.contains("no seven"), "\(reasons)")
    let outcomes = try #require(result.last["outcomes"] as? [String: Any])
    #expect(outcomes["unchanged"] as? Int == 1)
    try Self.write(job, "while read -r line; do echo '{\"$error\": \"never\"}'; done")
    let failed = try job.batch("run", "job.json", "--fresh")
    #expect(failed.status == 1)
    #expect(failed.errors.contains("identifier "), "\(failed.errors)")
  }

  @Test func `a row that another session changes while it is computed is computed again`() throws {
    let job = try SharedJob(rows: 1_000)
    // The program reports that it has read a chunk before it answers.
    try Self.write(
      job,
      #"""
      while read -r line; do
        if mkdir first 2>/dev/null; then echo >reached; read -r go <changed; fi
        n=${line#*'"n":'}; n=${n%%[,\}]*}
        echo "{\"n\": $((n + 1))}"
      done
      """#,
      adding: [
        "workers": 1,
        "source": ["entity": "t", "where": "n < 100"],
      ]
    )
    for pipe in ["reached", "changed"] { #expect(mkfifo(job.directory.file(pipe), 0o600) == 0) }
    let process = try job.start()
    let reached = try #require(FileHandle(forReadingAtPath: job.directory.file("reached")))
    #expect(try reached.readToEnd() == Data([0x0a]))
    try job.database.run("UPDATE t SET n = 10 WHERE id = 5; UPDATE t SET n = 100 WHERE id = 6")
    let go = try #require(FileHandle(forWritingAtPath: job.directory.file("changed")))
    try go.write(contentsOf: [0x0a])
    try go.close()
    let result = process.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.counts() == ["1 x 998", "11 x 1", "100 x 1"])
    #expect((try result.last["outcomes"] as? [String: Any])?["noLongerMatching"] as? Int == 1)
  }

  @Test func `a program that does not answer in time ends the run and keeps committed chunks`()
    throws
  {
    let job = try SharedJob(rows: 300)
    try Self.write(job, "exec sleep 1000", adding: [:])
    let action: [String: Any] = [
      "type": "transform", "columns": ["n"], "writes": ["n"], "command": ["./compute.sh"],
      "timeout": "300ms",
    ]
    try job.writeJob(["action": action, "retry": ["limit": 0]])
    let result = try job.start().wait()
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("has answered 0 of"), "\(result.errors)")
    #expect(try job.counts() == ["0 x 300"])
  }

  /// Random kills of three processes, each of which runs programs.
  @Test func `killed processes compute and set each row exactly once`() throws {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    let job = try SharedJob(rows: 30_000)
    try Self.write(job, adding: ["database": ["url": job.url(), "lease": "1s"]])
    var (kills, rounds) = (0, 0)
    while kills < KillLoop.kills {
      rounds += 1
      let command = ["run", "job.json", "--quiet", "--run-id", "round \(rounds)"]
      func start() throws -> BatchProgram { try BatchProgram(command, in: job.directory) }
      var processes = [try start(), try start(), try start()]
      while !processes.isEmpty {
        let place = Int.random(in: 0..<processes.count, using: &generator)
        let wait = Double.random(in: 0...0.6, using: &generator)
        if kills < KillLoop.kills, processes[place].send(SIGKILL, afterSeconds: wait) {
          kills += 1
          _ = processes[place].wait()
          processes[place] = try start()
        } else {
          let result = processes.remove(at: place).wait()
          #expect(result.status == 0, "seed \(seed): \(result.errors)")
        }
      }
      #expect(try job.counts() == ["\(rounds) x 30000"], "seed \(seed), round \(rounds)")
    }
    print("kill-loop transform: \(kills) kills in \(rounds) runs of 30,000 rows, seed \(seed)")
  }

  @Test func `a handler in Swift computes rows with the columns' types`() async throws {
    let job = try SharedJob(rows: 1_000, "ALTER TABLE t ADD price numeric(20, 4) DEFAULT 1.2500")
    let action: [String: Any] = [
      "type": "transform", "columns": ["id", "n", "price"], "writes": ["n", "price"],
      "handler": "add",
    ]
    // A lease of two seconds is too short for this process, in which other tests block threads.
    let database = ["url": job.url(), "lease": "60s"]
    try job.writeJob(["action": action, "skip": ["limit": 5], "database": database])
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2)
    #expect(refused.errors.contains("no handler \"add\""), "\(refused.errors)")
    struct Refusal: Error {}
    let handler = TransformHandler.rows { columns in
      let id = try columns.input("id", as: Int64.self)
      let n = try columns.input("n", as: Int64.self)
      let price = try columns.input("price", as: String.self)
      let (newN, newPrice) = (
        try columns.output("n", as: Int64.self), try columns.output("price", as: String.self)
      )
      return { row in
        if try row[id] == 7 { throw Refusal() }
        row.set(newN, to: (try row[n] ?? 0) + 1)
        try row.set(newPrice, to: (try row[price] ?? "") + "5")
      }
    }
    let run = BatchRun(
      try Job(contentsOf: .init(job.directory.file("job.json"))),
      handlers: ["add": handler]
    )
    let summary = try await run.run()
    #expect(summary.state == .completedWithFailures)
    #expect(summary.outcomes.succeeded == 999)
    #expect(try job.counts() == ["0 x 1", "1 x 999"])
    // 1.25005, rounded as the column has it.
    #expect(try job.database.text("SELECT count(*) FROM t WHERE price = 1.2501") == "999")
  }
}
#endif
