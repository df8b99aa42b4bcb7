#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Exports of what changed from PostgreSQL, to a file and to a folder.
@Suite(.timeLimit(.minutes(20))) struct SharedIncrementTests {
  /// Where the rows go.
  enum Output: String, CaseIterable, Sendable { case file, folder }

  private static func write(
    _ job: SharedJob,
    _ output: Output,
    since column: String,
    lag: String? = nil,
    source: [String: Any] = [:],
    adding more: [String: Any] = [:]
  ) throws {
    var since: [String: Any] = ["column": column]
    if let lag { since["lag"] = Int(lag) ?? lag }
    let name = output == .file ? "out-{runStartedAt}.csv" : "out-{runID}"
    try job.writeJob(
      [
        "source": ["entity": "items", "since": since].merging(source) { $1 },
        "action": [
          "type": "export", output.rawValue: name, "format": "csv", "columns": ["id", "v"],
        ],
      ].merging(more) { $1 }
    )
  }

  private static func texts(_ job: SharedJob, _ sql: String) throws -> [String] {
    let rows = try job.database.session().execute(sql)
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }

  /// Runs the job to its end; returns the values of `v` in the new output, and what it says.
  private static func run(
    _ job: SharedJob,
    _ arguments: String...
  ) throws -> (values: [Int], errors: String) {
    let before = try Set(job.directory.names())
    let result = try BatchProgram(["run", "job.json"] + arguments, in: job.directory).wait()
    try #require(result.status == 0, "\(result.errors)")
    let new = try job.directory.names().filter { $0.hasPrefix("out-") && !before.contains($0) }
    #expect(new.count == 1)
    let name = try #require(new.first)
    let text = try #require(try IncrementModel.text(name, in: job.directory))
    let lines = text.split(whereSeparator: \.isNewline).dropFirst()
    return (lines.compactMap { $0.split(separator: ",").last.flatMap { Int($0) } }, result.errors)
  }

  // MARK: One change after another

  /// Types of cursors and keys, and a value for each number.
  static let types: [(cursor: String, key: String, value: String)] = [
    ("bigint", "bigint", "n"), ("int", "uuid", "n"), ("numeric(12,3)", "text", "n / 8.0"),
    ("text COLLATE \"C\"", "varchar(20)", "lpad(n::text, 9, '0')"),
    ("uuid", "bigint", "lpad(n::text, 32, '0')::uuid"),
    ("bytea", "numeric", "int4send(n)"), ("double precision", "date", "n / 4.0"),
  ]

  @Test(arguments: types.indices, Output.allCases)
  func `a counter of any type has each row once`(type: Int, output: Output) throws {
    let (cursor, key, value) = Self.types[type]
    let id =
      switch key {
      case "uuid": "md5(n::text)::uuid"
      case "date": "date '2000-01-01' + n"
      default: "n::text::\(key)"
      }
    func insert(_ numbers: String) -> String {
      "INSERT INTO items SELECT \(id), n, \(value) FROM generate_series(\(numbers)) AS n;"
    }
    let job = try SharedJob(
      rows: 0,
      "CREATE TABLE items (id \(key) PRIMARY KEY, v int, at \(cursor)); CREATE INDEX ON items (at);"
        + insert("1, 50")
    )
    try Self.write(job, output, since: "at")
    let first = try Self.run(job)
    #expect(first.values.sorted() == Array(1...50))
    #expect(first.errors.contains("first increment"), "\(first.errors)")
    #expect(try Self.run(job).values == [])
    try job.database.run(insert("51, 60"))
    let plan = try job.batch("plan", "job.json")
    #expect(
      plan.status == 0 && plan.output.contains("matches    10 rows"),
      "\(plan.output)\(plan.errors)"
    )
    #expect(try Self.run(job).values.sorted() == Array(51...60))
    // The value of one row, and the key of another, go on.
    try job.database.run(
      "UPDATE items SET at = (SELECT at FROM items ORDER BY at DESC LIMIT 1) WHERE v = 3"
    )
    let last = try Self.run(job).values
    #expect(last == [] || last == [3])
    let json = try job.batch("status", "job.json", "--json").output
    #expect(try JSONOutput.object(json)["increment"] is [String: Any], "\(json)")
    let history = try JSONOutput.object(job.batch("history", "job.json", "--json").output)
    #expect((history["runs"] as? [[String: Any]])?.count == 4)
  }

  @Test(arguments: [
    "timestamptz", "timestamp", "date", "timestamptz(0)", "bigint", "double precision",
  ])
  func `a time ends before the present time less the lag`(type: String) throws {
    let now =
      switch type {
      case "bigint": "(extract(epoch FROM now()) * 1000)::bigint"
      case "double precision": "extract(epoch FROM now())"
      default: "now()"
      }
    let ago =
      switch type {
      case "bigint": "(extract(epoch FROM now() - interval '3 days') * 1000)::bigint"
      case "double precision": "extract(epoch FROM now() - interval '3 days')"
      default: "now() - interval '3 days'"
      }
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int PRIMARY KEY, v int, at \(type));
      INSERT INTO items VALUES (1, 1, \(ago)), (2, 2, \(now)), (3, 3, NULL);
      """
    )
    try Self.write(job, .folder, since: "at", lag: "2d")
    let first = try Self.run(job)
    #expect(first.values == [1], "\(first.errors)")
    #expect(
      first.errors.contains("1 row has NULL in at, and no increment exports it"),
      "\(first.errors)"
    )
    let plan = try job.batch("plan", "job.json")
    #expect(plan.errors.contains("no index finds rows of \"items\" by at"), "\(plan.errors)")
    if type != "date" {
      try Self.write(job, .folder, since: "at", lag: "4d")
      let refused = try job.batch("run", "job.json")
      #expect(
        refused.status == 2 && refused.errors.contains("the clock has gone back"),
        "\(refused.errors)"
      )
      #expect(try job.batch("status", "job.json").output.contains("the clock has gone back"))
    }
  }

  @Test func `a column that has no order in time is refused with one line`() throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int PRIMARY KEY, v int, t timestamptz, s text, f float8, j jsonb, n bigint);
      INSERT INTO items VALUES (1, 1, now(), '2026-01-01', 'NaN', '1', 0), (2, 2, now(), 'x', 1, '2', 1700000000000);
      """
    )
    for (column, lag, problem) in [
      ("t", nil, "is a time, which rows may get after others"),
      ("s", "1m", "is no time from which lag can be told"),
      ("f", nil, "'NaN' comes after every other value"), ("j", nil, "cannot be a key"),
      ("n", "1m", "0 and 1700000000000 are times in different forms"), ("zz", nil, "zz"),
    ] as [(String, String?, String)] {
      for output in Output.allCases {
        try Self.write(job, output, since: column, lag: lag)
        for command in ["run", "plan"] {
          let result = try job.batch(command, "job.json")
          #expect(
            result.status == 2 && result.errors.contains(problem),
            "\(column): \(result.errors)"
          )
          #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
        }
      }
    }
  }

  @Test(arguments: Output.allCases)
  func `a run that is set aside is done again, and one after a finished one starts over`(
    output: Output
  ) throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int PRIMARY KEY, v int, at bigint);
      INSERT INTO items SELECT n, n, n FROM generate_series(1, 20) AS n;
      """
    )
    try Self.write(job, output, since: "at")
    #expect(try Self.run(job).values.count == 20)
    try job.database.run("INSERT INTO items SELECT n, n, n FROM generate_series(21, 30) AS n")
    let hours = Calendar.current.component(.hour, from: .now) < 12 ? "22:00-23:00" : "01:00-02:00"
    let stop: [String: Any] = ["throttle": ["window": ["hours": hours, "otherwise": "stop"]]]
    try Self.write(job, output, since: "at", adding: stop)
    #expect(try job.batch("run", "job.json").status == 3)
    try job.database.run("INSERT INTO items VALUES (31, 31, 31)")
    try Self.write(job, output, since: "at")
    let plan = try job.batch("plan", "job.json").output
    #expect(plan.contains("at after 20 (key 20) up to 30 (key 30)"), "\(plan)")
    #expect(try Self.run(job, "--fresh").values.sorted() == Array(21...31))
    #expect(try Self.run(job, "--fresh").values.sorted() == Array(1...31))
    #expect(try job.batch("cleanup", "job.json", "--history").status == 0)
    #expect(try Self.run(job).values == [])
    try Self.write(job, output, since: "id")
    let refused = try job.batch("run", "job.json")
    #expect(
      refused.status == 2 && refused.errors.contains("the last increment was of other rows"),
      "\(refused.errors)"
    )
  }

  @Test(arguments: Output.allCases)
  func `a row that changes before its turn is left to the next run, whatever where reads`(
    output: Output
  ) throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int PRIMARY KEY, v int, at bigint);
      INSERT INTO items SELECT n, n, n FROM generate_series(1, 10) AS n;
      """
    )
    let source = ["where": "id <> (SELECT 4) OR false"]
    let held: [String: Any] = ["throttle": ["flagFile": "hold"], "chunk": ["size": 2]]
    try Self.write(job, output, since: "at", source: source, adding: held)
    try job.directory.write("", to: "hold")
    let program = try job.start()
    while let line = program.nextLine(), !line.contains("throttled") {}
    try job.database.run("UPDATE items SET at = 11, v = 77 WHERE id = 7")
    try FileManager.default.removeItem(atPath: job.directory.file("hold"))
    let result = program.wait()
    #expect(
      result.status == 0 && result.output.contains(#""noLongerMatching":1"#),
      "\(result.output)"
    )
    #expect(try Self.run(job).values == [77])
  }

  // MARK: Kills and writers

  /// How a column grows: in the order of commits, by a sequence whose values commit in any order, or with the time.
  static let cursors: [(name: String, value: String, lag: String?)] = [
    ("sequence", "nextval('versions')", "50"),
    ("counter", "(SELECT count(*) FROM log)", nil),
    ("time", "clock_timestamp()", "2s"),
  ]

  @Test(arguments: cursors.indices, Output.allCases)
  func `killed increments beside writers have each version exactly once`(
    cursor: Int,
    output: Output
  ) throws {
    let (name, value, lag) = Self.cursors[cursor]
    let type = name == "time" ? "timestamptz" : "bigint"
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TABLE items (id int PRIMARY KEY, v int, at \(type));
      CREATE INDEX ON items (at);
      CREATE TABLE log (v int PRIMARY KEY, id int);
      CREATE SEQUENCE versions;
      CREATE FUNCTION put(item int) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE next int;
        BEGIN
          -- A counter that others may read only when it is committed.
          IF '\(name)' = 'counter' THEN LOCK TABLE log IN EXCLUSIVE MODE; END IF;
          next := nextval('versions');
          INSERT INTO log VALUES (next, item);
          INSERT INTO items VALUES (item, next, \(value))
            ON CONFLICT (id) DO UPDATE SET v = excluded.v, at = excluded.at;
        END $$;
      SELECT put(n) FROM generate_series(1, 500) AS n;
      """
    )
    try Self.write(
      job,
      output,
      since: "at",
      lag: lag,
      adding: ["chunk": ["size": 20], "throttle": ["identifiersPerSecond": 3000], "history": 1000]
        .filter { output == .file || $0.key != "history" }
    )
    let seed = ProcessInfo.processInfo.environment["BATCH_SEED"].flatMap(UInt64.init)
    var kills = IncrementKills(seed: seed ?? .random(in: 0...UInt64(UInt32.max)), in: job.directory)
    let words = "\(name), \(output), seed \(kills.seed)"
    let writers = try (0..<2).map { number in
      let session = try job.database.session()
      var generator = SeededGenerator(seed: kills.seed ^ UInt64(number))
      return Writing {
        let id = Int.random(in: 1...700, using: &generator)
        if id % 20 == 0 {
          try session.execute("DELETE FROM items WHERE id = \(id)")
        } else {
          try session.execute("SELECT put(\(id))")
        }
      }
    }
    var model = IncrementModel { try Self.texts(job, $0) }
    for number in 1...10 {
      let run = try kills.complete(until: KillLoop.kills * number / 10)
      try model.add(run, in: job.directory, words)
    }
    for writer in writers { try writer.stop() }
    let deadline = ContinuousClock.now + .seconds(90)
    let due =
      lag == "50"
      ? "SELECT v FROM items WHERE at <= (SELECT max(at) - 50 FROM items)" : "SELECT v FROM items"
    while try !Set(Self.texts(job, due).compactMap { Int($0) }).isSubset(of: model.versions) {
      try #require(ContinuousClock.now < deadline, "\(words): rows are missing")
      try model.add(try kills.complete(until: 0), in: job.directory, words)
    }
    #expect(model.isContiguous)
    print(
      "increments of \(name) to a \(output): \(kills.count) kills, \(kills.resumed) resumed half-way,"
        + " \(model.runs) increments, \(model.versions.count) versions, seed \(kills.seed)"
    )
  }
}
#endif
