#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Exports of the log of changes from PostgreSQL, to a file and to a folder.
@Suite(.timeLimit(.minutes(20))) struct SharedChangeLogTests {
  /// Where the rows go.
  enum Output: String, CaseIterable, Sendable { case file, folder }

  private static func write(
    _ job: SharedJob,
    _ output: Output,
    entity: String = "items",
    columns: [String] = ["id", "v"],
    adding more: [String: Any] = [:]
  ) throws {
    let name = output == .file ? "out-{runStartedAt}.csv" : "out-{runStartedAt}"
    try job.writeJob(
      [
        "source": ["entity": entity, "changes": "log"],
        "action": ["type": "export", output.rawValue: name, "format": "csv", "columns": columns],
      ].merging(more) { $1 }
    )
  }

  private static func track(_ job: SharedJob, _ arguments: String...) throws -> String {
    let result = try BatchProgram(["track", "job.json"] + arguments, in: job.directory).wait()
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  /// Runs the job to its end; returns the lines of its new output without the names, sorted.
  private static func run(_ job: SharedJob, _ arguments: String...) throws -> [String] {
    let before = try Set(job.directory.names())
    let result = try BatchProgram(["run", "job.json"] + arguments, in: job.directory).wait()
    try #require(result.status == 0, "\(result.errors)")
    let new = try job.directory.names().filter { $0.hasPrefix("out-") && !before.contains($0) }
    let name = try #require(new.first)
    let text = try #require(try IncrementModel.text(name, in: job.directory))
    let lines = text.split(whereSeparator: \.isNewline).map(String.init)
    // Each file of a folder begins with the names.
    return lines.filter { $0 != lines.first }.sorted()
  }

  /// Runs until there is something: another test's transaction may be open for a while.
  private static func changes(_ job: SharedJob, _ count: Int = 1) throws -> [String] {
    let deadline = ContinuousClock.now + .seconds(60)
    var found: [String] = []
    while found.count < count {
      try #require(ContinuousClock.now < deadline, "\(found)")
      found += try run(job)
    }
    return found
  }

  // MARK: Keys

  /// Types of keys, and the key of each number `n`.
  static let keys: [(types: [String], values: [String])] = [
    (["bigint"], ["n"]), (["uuid"], ["md5(n::text)::uuid"]),
    (["text COLLATE \"C\""], ["'k ' || n"]),
    (["bytea"], ["int4send(n)"]),
    (["numeric(10,2)", "date"], ["n / 4.0", "date '2026-01-01' + n"]),
    (["timestamptz"], ["timestamptz '2026-01-01' + n * interval '1 microsecond'"]),
  ]

  @Test(arguments: keys.indices, Output.allCases)
  func `each run has the keys of any type that changed`(type: Int, output: Output) throws {
    let (types, values) = Self.keys[type]
    let columns = types.indices.map { "k\"\($0)" }
    let quoted = columns.map { "\"\($0.replacing("\"", with: "\"\""))\"" }
    let list = quoted.joined(separator: ", ")
    let definition = zip(quoted, types).map { "\($0) \($1)" }.joined(separator: ", ")
    func key(_ number: String) -> String {
      let row = values.map { $0.replacing(/\bn\b/, with: number) }.joined(separator: ", ")
      return values.count == 1 ? "\(list) = \(row)" : "(\(list)) = (\(row))"
    }
    let name = "\"it\"\"e'm `s\""
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE \(name) (\(definition), v int, PRIMARY KEY (\(list)));
      INSERT INTO \(name) SELECT \(values.joined(separator: ", ")), n FROM generate_series(1, 50) AS n;
      """
    )
    try Self.write(job, output, entity: name, columns: columns + ["v"])
    #expect(try Self.track(job).contains("made"))
    #expect(try !Self.track(job).contains("made"))
    #expect(try Self.run(job).count == 50)
    try job.database.run(
      """
      UPDATE \(name) SET v = 1000 WHERE \(key("3")); DELETE FROM \(name) WHERE \(key("4"));
      INSERT INTO \(name) SELECT \(values.joined(separator: ", ")), n FROM generate_series(51, 52) AS n;
      UPDATE \(name) SET v = 1001 WHERE \(key("51")); DELETE FROM \(name) WHERE \(key("52"));
      """
    )
    let found = try Self.changes(job, 4)
    #expect(found.count == 4)
    let ends = found.map {
      $0.split(separator: ",", omittingEmptySubsequences: false).suffix(2).joined(separator: ",")
    }
    #expect(ends.sorted() == [",delete", ",delete", "1000,update", "1001,insert"])
    try job.database.run("UPDATE \(name) SET \(key("100")) WHERE \(key("5"))")
    let moved = try Self.changes(job, 2)
    #expect(moved.map { $0.hasSuffix(",delete") }.filter(\.self).count == 1 && moved.count == 2)
    #expect(moved.contains { $0.hasSuffix(",5,insert") }, "\(moved)")
    let json = try job.batch("status", "job.json", "--json").output
    #expect(try JSONOutput.object(json)["increment"] is [String: Any], "\(json)")
    #expect(try Self.track(job, "--stop").contains("not logged any more"))
    let left = try job.database.session().execute(
      "SELECT count(*) FROM pg_class WHERE relname LIKE '\\_batch\\_change%' OR relname = '_batch_track'"
    )
    #expect(left.integer(0, 0) == 0)
  }

  // MARK: Transactions

  @Test(arguments: Output.allCases)
  func `changes of a transaction that is open during runs are neither lost nor exported twice`(
    output: Output
  ) throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int PRIMARY KEY, v int);
      INSERT INTO items SELECT n, n FROM generate_series(1, 10) AS n;
      """
    )
    try Self.write(job, output)
    _ = try Self.track(job)
    let open = try job.database.session()
    try open.execute("BEGIN")
    try open.execute("UPDATE items SET v = 100 WHERE id = 1")
    // The first run does not see it.
    #expect(try Self.run(job).contains("1,1,insert"))
    try job.database.run("UPDATE items SET v = 200 WHERE id = 2")
    let late = try job.database.session()
    try late.execute("BEGIN")
    try late.execute("DELETE FROM items WHERE id = 3")
    for _ in 0..<3 { #expect(try Self.run(job) == []) }
    try late.execute("COMMIT")
    #expect(try Self.run(job) == [])
    try open.execute("COMMIT")
    #expect(try Self.changes(job, 3) == ["1,100,update", "2,200,update", "3,,delete"])
    #expect(try Self.run(job) == [])
    try open.execute("BEGIN")
    try open.execute("UPDATE items SET v = 5 WHERE id = 5")
    try job.database.run("UPDATE items SET v = 400 WHERE id = 4")
    #expect(try Self.run(job) == [])
    try open.execute("ROLLBACK")
    #expect(try Self.changes(job) == ["4,400,update"])
  }

  @Test func `partitions, and TRUNCATE`() throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
      CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (10);
      CREATE TABLE high PARTITION OF items FOR VALUES FROM (10) TO (20);
      INSERT INTO items SELECT n, n FROM generate_series(8, 12) AS n;
      """
    )
    try Self.write(job, .folder)
    _ = try Self.track(job)
    #expect(try Self.run(job).count == 5)
    try job.database.run(
      """
      UPDATE items SET id = 15 WHERE id = 8; UPDATE high SET v = 0 WHERE id = 12;
      CREATE TABLE more PARTITION OF items FOR VALUES FROM (20) TO (30); INSERT INTO more VALUES (21, 1);
      """
    )
    #expect(try Self.changes(job, 4) == ["12,0,update", "15,8,insert", "21,1,insert", "8,,delete"])
    try job.database.run("TRUNCATE items; INSERT INTO items VALUES (9, 99)")
    #expect(
      try Self.changes(job, 6) == [
        "10,,delete", "11,,delete", "12,,delete", "15,,delete", "21,,delete", "9,99,insert",
      ]
    )
  }

  @Test func `a role that may only write the table is logged`() throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int PRIMARY KEY, v int);
      DROP ROLE IF EXISTS batch_writer_only; CREATE ROLE batch_writer_only;
      GRANT SELECT, INSERT, UPDATE, DELETE ON items TO batch_writer_only;
      """
    )
    try Self.write(job, .file)
    _ = try Self.track(job)
    #expect(try Self.run(job) == [])
    try job.database.run(
      "SET ROLE batch_writer_only; INSERT INTO items VALUES (1, 1); RESET ROLE; REVOKE ALL ON items FROM batch_writer_only"
    )
    #expect(try Self.changes(job) == ["1,1,insert"])
  }

  @Test func `the log keeps what one of its jobs has not exported`() throws {
    let job = try SharedJob(rows: 0, "CREATE TABLE items (id int PRIMARY KEY, v int)")
    try Self.write(job, .folder)
    _ = try Self.track(job)
    #expect(try Self.run(job) == [])
    let text = String(decoding: try job.directory.read("job.json"), as: UTF8.self)
    let name = try #require(try JSONOutput.object(text)["name"] as? String)
    try job.directory.write(
      text.replacing("\"\(name)\"", with: "\"slow\"").replacing("out-", with: "slow-"),
      to: "slow.json"
    )
    #expect(try job.batch("run", "slow.json").status == 0)
    try job.database.run("INSERT INTO items SELECT n, n FROM generate_series(1, 25000) AS n")
    #expect(try Self.changes(job).count == 25_000)
    _ = try Self.run(job)
    #expect(try Self.track(job, "--status").contains("job       slow: 25,000 changes"))
    _ = try Self.track(job, "--forget", "slow")
    _ = try Self.run(job)
    #expect(try Self.track(job, "--status").contains("log       0 changes"))
    let refused = try job.batch("run", "slow.json")
    #expect(
      refused.status == 2 && refused.errors.contains("the job was forgotten"),
      "\(refused.errors)"
    )
  }

  // MARK: Refusals

  @Test(arguments: [
    ("ALTER TABLE items DISABLE TRIGGER _batch_change_1", "is gone or disabled"),
    ("DROP TRIGGER _batch_change_0 ON items", "is gone or disabled"),
    ("DROP TABLE _batch_change_items", "are not logged"),
    (
      "ALTER TABLE items DROP CONSTRAINT items_pkey, ADD PRIMARY KEY (v)",
      "is not that of its logged changes"
    ),
    ("TRUNCATE _batch_change_items", "changes in between were removed"),
    ("DELETE FROM _batch_change_items", "changes in between were removed"),
  ])
  func `a log without all changes is refused with one line`(script: String, reason: String) throws {
    let job = try SharedJob(
      rows: 0,
      "CREATE TABLE items (id int PRIMARY KEY, v int); INSERT INTO items VALUES (1, 1)"
    )
    try Self.write(job, .file)
    let missing = try job.batch("run", "job.json")
    #expect(missing.status == 2 && missing.errors.contains("run batch track"), "\(missing.errors)")
    _ = try Self.track(job)
    #expect(try Self.run(job) == ["1,1,insert"])
    try job.database.run("UPDATE items SET v = 2; \(script)")
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2 && refused.errors.contains(reason), "\(refused.errors)")
    #expect(refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")
    _ = try Self.track(job)
    let anew = try job.batch("run", "job.json")
    #expect(anew.status == 2 && anew.errors.contains("--fresh"), "\(anew.errors)")
    #expect(try Self.run(job, "--fresh") == ["1,2,insert"])
    try job.database.run("UPDATE items SET v = 3")
    #expect(try Self.changes(job).last?.hasPrefix("1,3,") == true)
  }

  @Test func `what cannot be tracked is refused`() throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE VIEW shown AS SELECT * FROM t; CREATE TABLE parent (id int PRIMARY KEY);
      CREATE TABLE child () INHERITS (parent); CREATE TABLE taken (id int PRIMARY KEY, _change int);
      CREATE TABLE \(String(repeating: "x", count: 50)) (id int PRIMARY KEY); CREATE TABLE none (id int);
      """
    )
    for (table, reason) in [
      ("shown", "is no table, and cannot be tracked"),
      ("parent", "has tables that inherit from it"),
      ("taken", "has a column _change"),
      (String(repeating: "x", count: 50), "has a name of more than 49 bytes"),
      ("none", "has no primary key"),
    ] {
      let result = try job.batch("track", job.url(), "--entity", table)
      #expect(result.status == 2 && result.errors.contains(reason), "\(table): \(result.errors)")
    }
  }

  // MARK: Kills and writers

  @Test(arguments: Output.allCases)
  func `merging all increments gives the table, with transactions of any length`(
    output: Output
  ) throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int PRIMARY KEY, v int);
      INSERT INTO items SELECT n, n FROM generate_series(1, 100) AS n;
      """
    )
    try Self.write(
      job,
      output,
      adding: ["chunk": ["size": 20], "throttle": ["identifiersPerSecond": 3000], "history": 1000]
        .filter { output == .file || $0.key != "history" }
    )
    _ = try Self.track(job)
    let seed = ProcessInfo.processInfo.environment["BATCH_SEED"].flatMap(UInt64.init)
    var kills = IncrementKills(seed: seed ?? .random(in: 0...UInt64(UInt32.max)), in: job.directory)
    let words = "\(output), seed \(kills.seed)"
    let sessions = try (0..<3).map { _ in try job.database.session() }
    let writers = sessions.enumerated().map { number, session in
      var generator = SeededGenerator(seed: kills.seed ^ UInt64(number))
      var left = 0
      // Each writer has keys of its own, so that long transactions do not wait for one another.
      return Writing {
        if left == 0 {
          left =
            number == 0
            ? .random(in: 50...400, using: &generator) : .random(in: 1...9, using: &generator)
          try session.execute("BEGIN")
        }
        func id() -> Int { Int.random(in: 0...150, using: &generator) * 3 + number }
        let sql =
          switch Int.random(in: 0..<10, using: &generator) {
          case 0...1: "DELETE FROM items WHERE id = \(id())"
          case 2: "UPDATE items SET id = \(id()) WHERE id = \(id())"
          case 3...5: "UPDATE items SET v = v + 1 WHERE id = \(id())"
          default:
            "INSERT INTO items VALUES (\(id()), 0) ON CONFLICT (id) DO UPDATE SET v = items.v + 7"
          }
        try session.execute("SAVEPOINT s")
        do { try session.execute(sql) } catch { try session.execute("ROLLBACK TO SAVEPOINT s") }
        left -= 1
        if left == 0 {
          try session.execute(Int.random(in: 0..<5, using: &generator) == 0 ? "ROLLBACK" : "COMMIT")
        }
      }
    }
    for number in 1...12 { _ = try kills.complete(until: KillLoop.kills * number / 12) }
    for writer in writers { try writer.stop() }
    for session in sessions { try session.execute("COMMIT") }
    let rows = { () throws -> Set<String> in
      let found = try job.database.session().execute("SELECT id || ',' || v FROM items")
      return Set((0..<found.count).compactMap { found.text($0, 0) })
    }
    // Transactions of other tests may be open for a while.
    let deadline = ContinuousClock.now + .seconds(90)
    while true {
      _ = try kills.complete(until: 0)
      let merged = try ChangeLogModelTests.merged("out-", keys: 1, in: job.directory, words)
      if try Set(merged.values) == rows() { break }
      try #require(ContinuousClock.now < deadline, "\(words): rows differ")
    }
    print(
      "log to a \(output): \(kills.count) kills, \(kills.resumed) resumed half-way, seed \(kills.seed)"
    )
  }
}
#endif
