import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@Suite struct PlanReportTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(95, in: directory)
  }

  private func report(_ job: Job) async throws -> PlanReport {
    let before = try directory.read("test.db")
    let report = try await job.plan()
    #expect(try directory.read("test.db") == before)
    #expect(try directory.names().allSatisfy { $0.hasPrefix("test.db") || $0.hasSuffix(".ids") })
    return report
  }

  @Test func `a plan of an update shows rows before and after`() async throws {
    let report = try await report(
      .test(
        in: directory,
        .init(
          entity: "numbers",
          where: "id > 5",
          orderBy: [.init("id", descending: true)],
          limit: 42
        ),
        .update(.init(set: [.init("n", to: "id * 2"), .init("label", to: "NULL")]))
      )
    )
    #expect(report.matches == 42)
    #expect(report.chunks == 5)
    #expect(report.sample.count == 5)
    #expect(report.sample[0].identifier == "95")
    #expect(report.sample[0].before == ["n": .integer(0), "label": .text("label 95")])
    #expect(report.sample[0].after == ["n": .integer(190), "label": .null])
    #expect(report.sql.fetch.hasPrefix("SELECT `id` FROM `numbers` WHERE (id > 5"))
    #expect(report.sql.apply.hasPrefix("UPDATE `numbers` SET `n` = (id * 2"))
    let seconds = try #require(report.estimatedSeconds)
    #expect(try #require(report.leastSeconds) > 0 && #require(report.leastSeconds) < seconds)
    #expect(try #require(report.mostSeconds) > seconds)
  }

  @Test func `a plan estimates its time from trial chunks that leave no trace`() async throws {
    let connection = try Connection(path: path)
    // A trigger that makes an update slow, which reading rows does not show.
    try connection.execute("CREATE TABLE log (id)")
    try connection.execute(
      """
      CREATE TRIGGER slow AFTER UPDATE ON numbers BEGIN
        INSERT INTO log WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000)
        SELECT i FROM c;
      END
      """
    )
    let job = Job.test(
      in: directory,
      .init(entity: "numbers", everything: true),
      .update(.init(set: [.init("n", to: "n + 1")]))
    )
    let slow = try #require(try await report(job).estimatedSeconds)
    try connection.execute("DROP TRIGGER slow")
    let fast = try #require(try await report(job).estimatedSeconds)
    #expect(slow > fast + 0.01, "\(slow) s with the trigger, \(fast) s without")
    // Who writes is not waited for, nor made to wait.
    try connection.execute("BEGIN IMMEDIATE")
    let clock = ContinuousClock()
    let start = clock.now
    #expect(try await report(job).estimatedSeconds != nil)
    #expect(start.duration(to: clock.now) < .seconds(4))
    try connection.execute("ROLLBACK")
  }

  @Test func `a plan of a delete or an export shows the rows`() async throws {
    try Connection(path: path).execute("CREATE TABLE kept (id, n, label)")
    let deletion = try await report(
      .test(
        in: directory,
        .init(entity: "numbers", where: "id < 3"),
        .delete(.init(archive: "kept"))
      )
    )
    let rows: [[String: SQLValue]] = (1...2).map {
      ["id": .integer($0), "n": .integer(0), "label": .text("label \($0)")]
    }
    #expect(deletion.sample.map(\.before) == rows)
    #expect(deletion.sample.allSatisfy { $0.after == nil })
    #expect(deletion.sql.apply.contains("INSERT INTO `kept`"))
    #expect(deletion.sql.apply.contains("; DELETE FROM `numbers`"))
    var job = Job.test(
      in: directory,
      .init(entity: "numbers", where: "id < 3"),
      .exporting(directory)
    )
    job.action = .export(.init(file: "x.csv", format: .csv, columns: ["label"]))
    let export = try await report(job)
    #expect(
      export.sample.map(\.before) == [["label": .text("label 1")], ["label": .text("label 2")]]
    )
    #expect(export.warnings == [])
  }

  @Test func `a plan shows whether it scans all rows`() async throws {
    try Connection(path: path).execute("CREATE INDEX by_label ON numbers (label)")
    func fullScan(_ condition: String?) async throws -> Bool? {
      try await report(
        .test(
          in: directory,
          .init(entity: "numbers", where: condition, everything: condition == nil)
        )
      ).fullScan
    }
    #expect(try await fullScan("n = 0") == true)
    #expect(try await fullScan("label = 'label 7'") == false)
    #expect(try await fullScan("id BETWEEN 4 AND 9") == false)
    #expect(try await fullScan(nil) == false)
  }

  @Test func `a plan without matching rows is no error`() async throws {
    let report = try await report(
      .test(in: directory, .init(entity: "numbers", where: "id < 0"))
    )
    #expect(report.matches == 0 && report.chunks == 0)
    #expect(report.sample.isEmpty && report.estimatedSeconds == nil)
  }

  @Test func `a plan warns of triggers, references, scans, journal mode and missing indexes`()
    async throws
  {
    let connection = try Connection(path: path)
    try connection.execute("CREATE TRIGGER noisy AFTER DELETE ON numbers BEGIN SELECT 1; END")
    try connection.execute("CREATE TABLE child (p REFERENCES Numbers (id))")
    try connection.execute("CREATE TABLE loose (a, b)")
    try connection.execute("INSERT INTO loose VALUES (1, 2)")
    let deletion = try await report(
      .test(
        in: directory,
        .init(entity: "numbers", where: "n = 0"),
        .delete(.init())
      )
    ).warnings
    for part in [
      "where reads every row", "journal mode changes from delete to wal", "noisy", "child",
    ] {
      #expect(deletion.contains { $0.contains(part) }, "\(part)")
    }
    let update = try await report(
      .test(
        in: directory,
        .init(entity: "loose", everything: true, key: ["a"]),
        .update(.init(set: [.init("b", to: "b + 1")]))
      )
    ).warnings
    #expect(update.contains { $0.contains("an index on a would make the run much faster") })
  }

  @Test(arguments: [true, false])
  func `a plan refuses duplicate declared keys as the run does`(isUpdate: Bool) async throws {
    let connection = try Connection(path: path)
    try connection.execute("CREATE TABLE loose (a, b)")
    try connection.execute("INSERT INTO loose VALUES (1, 2), (NULL, 1), (1, 3)")
    let action: Job.Action =
      isUpdate
      ? .update(.init(set: [.init("b", to: "b + 1")])) : .exporting(directory, "out.ndjson")
    let job = Job.test(
      in: directory,
      .init(entity: "loose", everything: isUpdate, key: ["a"]),
      action
    )
    let planned = await #expect(throws: BatchError.self) { try await report(job) }
    #expect(planned?.code == .unstableKey)
    #expect(
      planned?.description == "source.key: two rows of \"loose\" have the same a; name columns in"
        + " source.key that identify a row"
    )
    let ran = await #expect(throws: BatchError.self) { try await BatchRun(job).run() }
    #expect(ran?.message == planned?.message)
    // A row that is not selected shares the key of one that is, or not.
    var other = job
    other.source.everything = false
    other.source.where = "a IS NULL"
    #expect(try await report(other).matches == 1)
  }

  @Test func `a plan suggests an index only for a query whose rows are not computed`() async throws
  {
    let query = "SELECT label, count(*) AS c FROM numbers WHERE id < 9 GROUP BY label"
    let grouped = try await report(
      .test(
        in: directory,
        .init(query: query, key: ["label"], where: "c > 0"),
        .exporting(directory, "out.ndjson")
      )
    )
    #expect(grouped.matches == 8 && grouped.lookUp?.isCopied == false)
    #expect(grouped.warnings.filter { $0.contains("index") } == [])
    // One that SQLite takes apart can do with an index.
    let plain = try await report(
      .test(
        in: directory,
        .init(query: "SELECT id, label FROM numbers", key: ["id"], where: "label = 'x'"),
        .exporting(directory, "out.ndjson")
      )
    )
    #expect(plain.warnings.contains { $0.contains("an index would help the selection") })
  }

  @Test func `a plan of a list in a file counts its identifiers`() async throws {
    let store = try await Store(path: path)
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "numbers", where: "id < 12"))
    let file = FilePath(directory.file("some.ids"))
    try IdentifierFile.create(at: file, list: list)
    let report = try await report(
      .test(in: directory, .init(entity: "numbers", identifiers: file))
    )
    #expect(report.matches == 11)
    #expect(report.chunks == 2)
  }

  @Test func `a plan encodes infinite numbers and blobs`() async throws {
    try Connection(path: path).execute(
      "UPDATE numbers SET n = 9e999, label = x'00ff' WHERE id = 1"
    )
    let report = try await report(
      .test(in: directory, .init(entity: "numbers", where: "id = 1"), .delete(.init()))
    )
    let text = String(decoding: try JSONEncoder().encode(report), as: UTF8.self)
    #expect(text.contains("\"n\":\"inf\""))
    #expect(text.contains("AP8="))
  }

  @Test(arguments: [
    ("nombers", "n", "n + 1", BatchError.Code.unknownEntity),
    ("numbers", "m", "n + 1", .unknownAttribute),
    ("numbers", "n", "m + 1", .invalidSQL),
    ("numbers", "n", "count(*)", .invalidSQL),
    ("numbers", "id", "id + 1", .unstableKey),
    ("numbers", "g", "1", .unknownAttribute),
    ("shown", "n", "1", .readOnly),
  ])
  func `a plan refuses an impossible change as the run does`(
    entity: String,
    column: String,
    expression: String,
    code: BatchError.Code
  ) async throws {
    let connection = try Connection(path: path)
    try connection.execute("ALTER TABLE numbers ADD COLUMN g AS (n)")
    try connection.execute("CREATE VIEW shown AS SELECT id, n FROM numbers")
    let error = await #expect(throws: BatchError.self) {
      try await report(
        .test(
          in: directory,
          .init(entity: entity, everything: true),
          .update(.init(set: [.init(column, to: expression)]))
        )
      )
    }
    #expect(error?.code == code)
    #expect(error?.place != nil)
  }

  @Test func `a plan counts the rows that the table would refuse by reason`() async throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, mail TEXT UNIQUE,
        age INT CHECK (age > 0), twice AS (age * 2))
      """,
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000)
      INSERT INTO people (id, name, mail, age)
        SELECT i, iif(i % 10, 'Name', 'École') || i, 'm' || i, i % 10 + 1 FROM c
      """
    )
    func warnings(_ set: [String: String], skip: Int = 0) async throws -> [String] {
      var job = Job.test(
        in: directory,
        .init(entity: "people", everything: true),
        .update(.init(set: set.sorted { $0.key < $1.key }.map { .init($0.key, to: $0.value) }))
      )
      job.skip = .init(limit: skip)
      return try await report(job).warnings.filter { $0.contains(" of the first 1,000 rows ") }
    }
    #expect(try await warnings(["age": "age + 1", "name": "name || '!'"]) == [])
    #expect(
      try await warnings(["age": "age - 3"]) == [
        "300 of the first 1,000 rows would fail: CHECK constraint failed: age > 0; the first one stops"
          + " the run"
      ]
    )
    #expect(
      try await warnings(["name": "nullif(name, 'Name7')"], skip: 5) == [
        "1 of the first 1,000 rows would fail: NOT NULL constraint failed: people.name; skip decides how"
          + " many may fail"
      ]
    )
    // Two rows of the sample with the same value, and one with the value of a row beyond it.
    #expect(
      try await warnings(["mail": "iif(id = 5, 'm1999', iif(id = 8, NULL, mail))"]).count == 1
    )
    let same = try await warnings(["mail": "'x' || ((id + 1) / 2)"])
    #expect(same.count == 1 && same[0].hasPrefix("500 of the first 1,000 rows would fail: UNIQUE"))
    #expect(
      try await warnings(["name": "upper(name)"]) == []
    )
    let lower = try await warnings(["name": "replace(lower(name), 'é', 'É')"])
    #expect(lower.count == 1 && lower[0].hasPrefix("lower() changes the letters A to Z only: 100 "))
    #expect(lower.first?.contains("\"École10\"") == true)
  }

  @Test func `a plan states how many rows it has tried`() async throws {
    func tried(_ action: Job.Action) async throws -> Int? {
      try await report(
        .test(in: directory, .init(entity: "numbers", everything: true), action)
      ).triedRows
    }
    let update = Job.Action.update(.init(set: [.init("n", to: "n + 1")]))
    #expect(try await tried(update) == 95)
    #expect(try await tried(.delete(.init())) == nil)
    try Connection(path: path).execute(
      """
      WITH RECURSIVE c(i) AS (SELECT 5000 UNION ALL SELECT i + 1 FROM c WHERE i < 7000)
      INSERT INTO numbers (id, n) SELECT i, i FROM c
      """
    )
    #expect(try await tried(update) == 1_000)
  }

  @Test func `a plan counts the rows that an archive would refuse`() async throws {
    try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE old (ID INTEGER PRIMARY KEY, n INTEGER CHECK (n < 90), Label TEXT UNIQUE,
        at TEXT NOT NULL DEFAULT 'now')
      """,
      "INSERT INTO old (id, n, label) VALUES (7, 0, 'x'), (1000, 0, 'label 9')",
      "UPDATE numbers SET n = 95 WHERE id IN (3, 4)"
    )
    let warnings = try await report(
      .test(
        in: directory,
        .init(entity: "numbers", everything: true),
        .delete(.init(archive: "old"))
      )
    ).warnings.filter { $0.contains("would fail") }
    #expect(
      warnings.map { $0.prefix { $0 != ";" } } == [
        "2 of 95 rows would fail: CHECK constraint failed: n < 90",
        "1 of 95 rows would fail: another row has the same old.ID now",
        "1 of 95 rows would fail: another row has the same old.Label now",
      ]
    )
  }

  @Test func `a plan names the indexes that the run writes`() async throws {
    try Connection(path: path).execute("CREATE INDEX by_label ON numbers (label)")
    try Connection(path: path).execute("CREATE INDEX low ON numbers (lower(label))")
    try Connection(path: path).execute("CREATE INDEX some ON numbers (id) WHERE n > 0")
    func named(_ column: String) async throws -> String? {
      try await report(
        .test(
          in: directory,
          .init(entity: "numbers", everything: true),
          .update(.init(set: [.init(column, to: "NULL")]))
        )
      ).warnings.first { $0.contains("moves its entry") }
    }
    #expect(try await named("label")?.contains(#"indexes "by_label", "low""#) == true)
    #expect(try await named("n")?.contains(#"index "some""#) == true)
  }

  @Test func `a plan's time estimate includes the rate limit and the daily window`() async throws {
    var job = Job.test(
      in: directory,
      .init(entity: "numbers", everything: true),
      .update(.init(set: [.init("n", to: "1")]))
    )
    #expect(try await report(job).pace == nil)
    job.throttle.identifiersPerSecond = 0.01
    var timed = try await report(job)
    #expect(timed.estimatedSeconds == 9_500 && timed.pace == "throttle.identifiersPerSecond")
    #expect(timed.leastSeconds == 9_500 && timed.mostSeconds == 9_500)
    job.throttle.window = .init(from: 23 * 60 + 30, until: 30)
    timed = try await report(job)
    #expect(timed.pace == "throttle.identifiersPerSecond and throttle.window, on 3 days")
  }

  @Test func `a plan reports enforced foreign keys and unreadable rows`() async throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
      "CREATE TABLE child (id INTEGER PRIMARY KEY, p REFERENCES parent, j TEXT)",
      "INSERT INTO parent VALUES (1), (2)",
      "INSERT INTO child VALUES (1, 1, '{}'), (2, 1, 'bad'), (3, 2, '{}')"
    )
    func warnings(_ entity: String, _ action: Job.Action) async throws -> [String] {
      var job = Job.test(in: directory, .init(entity: entity, everything: true), action)
      job.database.foreignKeys = true
      return try await report(job).warnings.filter { !$0.contains("journal mode") }
    }
    #expect(
      try await warnings("child", .update(.init(set: [.init("p", to: "iif(id = 2, 9, p)")]))) == [
        "1 of 3 rows would fail: p is 9, and \"parent\" has no such row; the first one stops the run"
      ]
    )
    let refusal =
      "a row that rows of child refer to cannot be deleted (database.foreignKeys), and fails"
    let scan =
      "for each deleted row of \"parent\", SQLite reads all of \"child\", since no index leads to the rows that"
      + " refer to it;"
      + " an index on p would make the run much faster"
    #expect(try await warnings("parent", .delete(.init())) == [refusal, scan])
    // An index that begins with another column, or has only some rows, leads to no reference.
    try TestDatabase.make(
      in: directory,
      "CREATE INDEX other ON child (j, p)",
      "CREATE INDEX part ON child (p) WHERE j IS NOT NULL"
    )
    #expect(try await warnings("parent", .delete(.init())) == [refusal, scan])
    try TestDatabase.make(in: directory, "CREATE INDEX \"leads\" ON child (P, j)")
    #expect(try await warnings("parent", .delete(.init())) == [refusal])
    // A condition that every reference fulfils does no harm.
    try TestDatabase.make(
      in: directory,
      "DROP INDEX \"leads\"",
      "CREATE INDEX \"leads\" ON child (p) WHERE p IS NOT NULL"
    )
    #expect(try await warnings("parent", .delete(.init())) == [refusal])
    let names = ["other", "part", "leads"]
    for name in names { try TestDatabase.make(in: directory, "DROP INDEX \(name)") }
    let failing = try await warnings(
      "child",
      .update(.init(set: [.init("j", to: "json_extract(j, '$.k')")]))
    )
    #expect(failing.count == 1)
    #expect(failing[0].hasPrefix("set.j fails for the row 2: malformed JSON"), "\(failing)")
  }

  @Test func `a plan names each table that a cascading deletion reads whole for each row`()
    async throws
  {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE a (id INTEGER PRIMARY KEY, x, y, UNIQUE (x, y))",
      "CREATE TABLE b (id INTEGER PRIMARY KEY REFERENCES a ON DELETE CASCADE)",
      "CREATE TABLE c (x, y, b REFERENCES b ON DELETE CASCADE, FOREIGN KEY (x, y) REFERENCES a (x, y))",
      "CREATE TABLE d (c REFERENCES c)",
      "CREATE INDEX by_b ON c (b)",
      "INSERT INTO a (id) VALUES (1)"
    )
    var job = Job.test(in: directory, .init(entity: "a", everything: true), .delete(.init()))
    job.database.foreignKeys = true
    let scans = try await report(job).warnings.filter { $0.contains("reads all of") }
    #expect(
      scans.map { $0.components(separatedBy: ";")[0] } == [
        "for each deleted row of \"a\", SQLite reads all of \"c\", since no index leads to the rows that refer to it",
        "for each deleted row of \"c\", SQLite reads all of \"d\", since no index leads to the rows that refer to it",
      ]
    )
  }

  @Test func `a plan reports only the triggers that the run fires`() async throws {
    let connection = try Connection(path: path)
    try connection.execute(
      """
      CREATE TRIGGER updated AFTER UPDATE ON numbers
      BEGIN UPDATE numbers SET label = '' WHERE id = new.id; END
      """
    )
    try connection.execute(
      "CREATE TRIGGER deleted AFTER DELETE ON numbers BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    let deletion = try await report(
      .test(in: directory, .init(entity: "numbers", where: "id < 3"), .delete(.init()))
    )
    #expect(deletion.warnings.contains("\"numbers\" has triggers, which run: deleted"))
    let update = try await report(
      .test(
        in: directory,
        .init(entity: "numbers", where: "id < 3"),
        .update(.init(set: [.init("n", to: "1")]))
      )
    )
    #expect(update.warnings.contains("\"numbers\" has triggers, which run: updated"))
  }

  @Test func `a plan names the row for which an expression fails`() async throws {
    let report = try await report(
      .test(
        in: directory,
        .init(entity: "numbers", where: "id > 5"),
        .update(
          .init(set: [
            .init("n", to: "n + 1"),
            .init("label", to: "json(CASE WHEN id = 42 THEN '{' ELSE '{}' END)"),
          ])
        )
      )
    )
    #expect(
      report.warnings.contains { $0.hasPrefix("set.label fails for the row 42: malformed JSON") },
      "\(report.warnings)"
    )
  }
}
