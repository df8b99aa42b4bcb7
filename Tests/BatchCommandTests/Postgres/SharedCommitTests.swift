#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// What happens to a run whose first COMMIT gets no answer, whatever it begins with: it begins once, and each row is done once.
@Suite(.timeLimit(.minutes(5))) struct SharedCommitTests {
  private static let rows = 2_000

  private let job: SharedJob

  init() throws {
    job = try SharedJob(rows: Self.rows)
  }

  /// Has all that the job says to the server go through a proxy, which breaks the session that commits a transaction.
  private func proxy(
    breaking marker: String = "INSERT INTO \"public\".\"_batch_run\"",
    at end: String = "COMMIT",
    _ moment: CommitProxy.Moment,
    _ more: [String: Any] = [:],
    _ body: @escaping @Sendable () -> Void = {}
  ) throws -> CommitProxy {
    let cluster = job.database.cluster
    let socket = "\(cluster.folder)/.s.PGSQL.\(cluster.port)"
    let proxy = try CommitProxy(to: socket, breaking: marker, at: end, moment, body)
    let url = "postgres://postgres@/\(job.database.name)?host=\(proxy.folder)&port=5432"
    let database: [String: Any] = ["database": ["url": url, "lease": "10s"]]
    try job.writeJob(database.merging(more) { $1 })
    return proxy
  }

  /// Runs the job through a proxy, and expects it to be complete.
  @discardableResult
  private func run(
    _ proxy: CommitProxy,
    _ arguments: String...,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> BatchProgram.Result {
    let command = arguments.isEmpty ? ["run", "job.json"] : arguments
    let result = try BatchProgram(command + ["--json"], in: job.directory).wait()
    #expect(result.status == 0, "\(result.errors)", sourceLocation: sourceLocation)
    #expect(proxy.hasBroken, sourceLocation: sourceLocation)
    #expect(
      try result.last["state"] as? String == "completed",
      "\(result.output)",
      sourceLocation: sourceLocation
    )
    return result
  }

  private func states() throws -> String? {
    try job.database.text("SELECT string_agg(state, ' ' ORDER BY started_at) FROM _batch_run")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `an update whose COMMIT gets no answer does each row once`(moment: CommitProxy.Moment) throws
  {
    try run(proxy(moment))
    #expect(try job.counts() == ["1 x 2000"])
    #expect(try states() == "acknowledged")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `a run is done once if the COMMIT of its tables gets no answer`(moment: CommitProxy.Moment)
    throws
  {
    try run(proxy(breaking: "CREATE TABLE \"public\".\"_batch_run\"", moment))
    #expect(try job.counts() == ["1 x 2000"])
    #expect(try states() == "acknowledged")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `the work of a run ID is done once if a COMMIT gets no answer`(moment: CommitProxy.Moment)
    throws
  {
    let proxy = try proxy(moment)
    try run(proxy, "run", "job.json", "--run-id", "monday")
    try run(proxy, "run", "job.json", "--run-id", "monday")
    #expect(try job.counts() == ["1 x 2000"])
    #expect(try states() == "acknowledged")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `a fresh run sets another aside once if a COMMIT gets no answer`(moment: CommitProxy.Moment)
    throws
  {
    try job.writeJob(["throttle": ["identifiersPerSecond": 500]])
    let first = try job.start()
    try job.untilDone(100)
    first.send(SIGINT)
    #expect(first.wait().status == 3)
    let done = try #require(Int(job.database.text("SELECT sum(n) FROM t") ?? ""))
    let result = try run(proxy(moment), "run", "job.json", "--fresh")
    #expect(try job.counts() == ["1 x \(Self.rows - done)", "2 x \(done)"])
    #expect(try states() == "setAside acknowledged")
    #expect(result.output.contains("\"event\":\"setAside\""), "\(result.output)")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `a run over an identifier file is done once if a COMMIT gets no answer`(
    moment: CommitProxy.Moment
  ) throws {
    try job.writeJob(["name": "first", "source": ["entity": "t", "where": "id % 2 = 0"]])
    #expect(try job.start().wait().status == 0)
    #expect(try job.batch("ids", "job.json", "--output", "even.ids").status == 0)
    try run(proxy(moment, ["source": ["entity": "t", "identifiers": "even.ids"]]))
    #expect(try job.counts() == ["0 x 1000", "2 x 1000"])
    #expect(try states() == "acknowledged acknowledged")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `a delete creates its archive once if a COMMIT gets no answer`(moment: CommitProxy.Moment)
    throws
  {
    let action: [String: Any] = ["type": "delete", "archive": ["entity": "kept", "create": true]]
    try run(proxy(moment, ["action": action, "source": ["entity": "t", "where": "id <= 500"]]))
    #expect(try job.database.text("SELECT count(*) FROM t") == "1500")
    #expect(try job.database.text("SELECT count(*) FROM kept") == "500")
    #expect(try states() == "acknowledged")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `a transform by a command is done once if a COMMIT gets no answer`(
    moment: CommitProxy.Moment
  ) throws {
    try job.directory.write(
      "#!/bin/sh\nwhile read -r line; do echo '{\"n\": 1}'; done\n",
      to: "compute.sh"
    )
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755],
      ofItemAtPath: job.directory.file("compute.sh")
    )
    let action: [String: Any] = [
      "type": "transform", "columns": ["n"], "writes": ["n"], "command": ["./compute.sh"],
    ]
    try run(proxy(moment, ["action": action]))
    #expect(try job.counts() == ["1 x 2000"])
    #expect(try states() == "acknowledged")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `an export to parts is complete if a COMMIT gets no answer`(moment: CommitProxy.Moment)
    throws
  {
    let action = ["type": "export", "folder": "out", "format": "csv"]
    try run(proxy(moment, ["action": action]))
    let text = try String(decoding: job.directory.read("out/manifest.json"), as: UTF8.self)
    #expect(try JSONOutput.object(text)["rows"] as? Int == Self.rows)
    #expect(try states() == "acknowledged")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `a run over no rows calls its hook once if a COMMIT gets no answer`(
    moment: CommitProxy.Moment
  ) throws {
    let finish = ["sh", "-c", "echo $BATCH_STATE >> hooks.txt"]
    let more: [String: Any] = [
      "source": ["entity": "t", "where": "n > 5"], "hooks": ["onFinish": finish],
    ]
    try run(proxy(moment, more))
    #expect(try states() == "acknowledged")
    #expect(try String(decoding: job.directory.read("hooks.txt"), as: UTF8.self) == "completed\n")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `a retry of failures is done once if a COMMIT gets no answer`(moment: CommitProxy.Moment)
    throws
  {
    try job.database.run("ALTER TABLE t ADD CONSTRAINT poison CHECK (id % 100 > 0 OR n = 0)")
    try job.writeJob(["skip": ["limit": 100]])
    #expect(try job.start().wait().status == 4)
    try job.database.run("ALTER TABLE t DROP CONSTRAINT poison")
    let proxy = try proxy(breaking: "SET state = 'running'", moment, ["skip": ["limit": 100]])
    let result = try run(proxy, "retry-failed", "job.json")
    #expect(result.output.contains("\"event\":\"retryingFailures\""), "\(result.output)")
    #expect(try job.counts() == ["1 x 2000"])
    #expect(try states() == "acknowledged")
  }

  @Test(arguments: CommitProxy.Moment.allCases)
  func `a chunk that is tried again row by row may lose its connection`(moment: CommitProxy.Moment)
    throws
  {
    try job.writeJob(["undo": true])
    #expect(try job.start().wait().status == 0)
    try job.database.run("UPDATE t SET n = 7 WHERE id % 500 = 0")
    // Rows that others have changed have their chunk rolled back, and told apart.
    let ledger = "INSERT INTO \"public\".\"_batch_ledger\""
    let proxy = try proxy(breaking: ledger, at: "ROLLBACK", moment, ["undo": true])
    let result = try BatchProgram(["undo", "job.json"], in: job.directory).wait()
    #expect(proxy.hasBroken)
    #expect(result.status == 4, "\(result.errors)")
    #expect(try job.counts() == ["0 x 1996", "7 x 4"])
  }

  @Test func `a run ends if its ledger is emptied before an unanswered COMMIT is checked`() throws {
    let database = job.database
    let ledger = "INSERT INTO \"public\".\"_batch_ledger\""
    let proxy = try proxy(breaking: ledger, .after, ["workers": 1]) {
      try? database.run("TRUNCATE _batch_ledger")
    }
    let result = try BatchProgram(["run", "job.json"], in: job.directory).wait()
    #expect(proxy.hasBroken)
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("_batch_ledger has 100 of them"), "\(result.errors)")
    #expect(try job.counts().allSatisfy { $0.hasPrefix("0 ") || $0.hasPrefix("1 ") })
    #expect(try job.counts() != ["0 x 2000"])
  }
}
#endif
