#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Changes of the schema at every moment of a run: what does not concern it changes nothing; what does ends it with the
/// change in words, and the same command finishes it when the change is undone.
///
/// The oracle knows which actions a change concerns, and what the rows or lines are at the end.
@Suite(.timeLimit(.minutes(60))) struct SharedSchemaChangeTests {
  /// The number of trials; `BATCH_SEQUENCES` increases it, `BATCH_SEED` is that of the first.
  private static let seeds: Range<UInt64> = {
    let environment = ProcessInfo.processInfo.environment
    let first = UInt64(environment["BATCH_SEED"] ?? "") ?? 0
    return first..<first + (UInt64(environment["BATCH_SEQUENCES"] ?? "") ?? 24)
  }()

  @Test(arguments: seeds)
  func `a shared run survives a schema change or names it`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    // Every change comes before one comes again.
    let change = SchemaChange.all[Int(seed) % SchemaChange.all.count]
    // Three of four times one that the change concerns.
    let actions =
      Int.random(in: 0..<4, using: &random) > 0
      ? change.concerns : Set(SchemaChange.Action.allCases)
    let action = try #require(
      SchemaChange.Action.allCases.filter(actions.contains).randomElement(using: &random)
    )
    let moment = try #require(SchemaTrial.Moment.allCases.randomElement(using: &random))
    let trial = try SchemaTrial(
      change,
      action,
      "seed \(seed): \(change.name), \(action), \(moment)"
    )
    try trial.run(moment, after: .random(in: 0...0.5, using: &random))
  }
}

/// A change of the schema.
private struct SchemaChange {
  /// What a job does.
  enum Action: CaseIterable {
    case update, delete, archive, transform, export, exportAll, exportParts
  }

  let name: String
  /// What somebody does, in a transaction.
  let sql: String
  /// What undoes it; nil if nothing does.
  var undo: String?
  /// What the error says; nil if the change concerns no job.
  var words: String?
  /// The jobs that it concerns.
  var concerns = Set(Action.allCases)

  private static let everything = Set(Action.allCases)
  /// The jobs that read each column.
  private static let whole: Set<Action> = [.archive, .exportAll]

  static let all = [
    SchemaChange(
      name: "a column is added",
      sql: "ALTER TABLE t ADD COLUMN c int DEFAULT 7",
      undo: "ALTER TABLE t DROP COLUMN c",
      words: "has got c, whose values would be deleted without a copy",
      concerns: [.archive]
    ),
    SchemaChange(
      name: "an unused column is dropped",
      sql: "ALTER TABLE t DROP COLUMN extra",
      words: "has no column extra any more",
      concerns: whole
    ),
    SchemaChange(
      name: "an unused column is renamed",
      sql: "ALTER TABLE t RENAME COLUMN extra TO other",
      undo: "ALTER TABLE t RENAME COLUMN other TO extra",
      words: "has no column extra any more: it is named other now",
      concerns: whole
    ),
    SchemaChange(
      name: "an unused column gets another type",
      sql: "ALTER TABLE t ALTER COLUMN note TYPE varchar(50)",
      undo: "ALTER TABLE t ALTER COLUMN note TYPE text",
      words: "has the type character varying(50) for column note instead of text",
      concerns: whole
    ),
    SchemaChange(
      name: "a column is renamed",
      sql: "ALTER TABLE t RENAME COLUMN n TO number",
      undo: "ALTER TABLE t RENAME COLUMN number TO n",
      words: "has no column n any more: it is named number now",
      concerns: everything.subtracting([.delete])
    ),
    SchemaChange(
      name: "the column of the key is renamed",
      sql: "ALTER TABLE t RENAME COLUMN id TO key",
      undo: "ALTER TABLE t RENAME COLUMN key TO id",
      words: "has no column id any more: it is named key now"
    ),
    SchemaChange(
      name: "two columns exchange their names",
      sql: """
        ALTER TABLE t RENAME COLUMN n TO x; ALTER TABLE t RENAME COLUMN m TO n; ALTER TABLE t RENAME COLUMN x TO m
        """,
      undo: """
        ALTER TABLE t RENAME COLUMN n TO x; ALTER TABLE t RENAME COLUMN m TO n; ALTER TABLE t RENAME COLUMN x TO m
        """,
      words: "now: the one that the run began with is named"
    ),
    SchemaChange(
      name: "the key and another column exchange their names",
      sql: """
        ALTER TABLE t RENAME COLUMN id TO x; ALTER TABLE t RENAME COLUMN m TO id; ALTER TABLE t RENAME COLUMN x TO m
        """,
      undo: """
        ALTER TABLE t RENAME COLUMN id TO x; ALTER TABLE t RENAME COLUMN m TO id; ALTER TABLE t RENAME COLUMN x TO m
        """,
      words: "has another column id now: the one that the run began with is named m"
    ),
    SchemaChange(
      name: "a column gets another type",
      sql: "ALTER TABLE t ALTER COLUMN n TYPE bigint",
      undo: "ALTER TABLE t ALTER COLUMN n TYPE int",
      words: "has the type bigint for column n instead of integer",
      concerns: everything.subtracting([.delete])
    ),
    SchemaChange(
      name: "the key gets another type",
      sql: "ALTER TABLE t ALTER COLUMN id TYPE int",
      undo: "ALTER TABLE t ALTER COLUMN id TYPE bigint",
      words: "has the type integer for column id instead of bigint"
    ),
    SchemaChange(
      name: "a column of the condition is dropped",
      sql: "ALTER TABLE t DROP COLUMN m",
      words: "has no column m any more"
    ),
    SchemaChange(
      name: "the table is renamed",
      sql: "ALTER TABLE t RENAME TO u",
      undo: "ALTER TABLE u RENAME TO t",
      words: "\"t\" is named u now"
    ),
    SchemaChange(
      name: "the table moves to another schema",
      sql: "CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s",
      undo: "ALTER TABLE s.t SET SCHEMA public",
      words: "\"t\" is named s.t now"
    ),
    SchemaChange(
      name: "another table takes the name",
      sql: """
        ALTER TABLE t RENAME TO u; CREATE TABLE t (LIKE u INCLUDING ALL);
        INSERT INTO t SELECT * FROM copy
        """,
      undo: "DROP TABLE t; ALTER TABLE u RENAME TO t",
      words: "\"t\" is another table now: the one that the run began with is named u"
    ),
    SchemaChange(
      name: "the table is made again",
      sql: """
        ALTER TABLE t RENAME TO u; CREATE TABLE t (LIKE u INCLUDING ALL); DROP TABLE u;
        INSERT INTO t SELECT * FROM copy
        """,
      words: "\"t\" is another table now: the one that the run began with is gone"
    ),
    SchemaChange(name: "the table is dropped", sql: "DROP TABLE t", words: "\"t\" is gone"),
    SchemaChange(
      name: "the key is dropped",
      sql: "ALTER TABLE t DROP CONSTRAINT t_pkey",
      undo: "ALTER TABLE t ADD PRIMARY KEY (id)",
      words: "has no key any more: nothing makes id unique"
    ),
    SchemaChange(
      name: "a view is defined in another way",
      sql: "CREATE OR REPLACE VIEW rates AS SELECT s + 100 AS step FROM r",
      undo: "CREATE OR REPLACE VIEW rates AS SELECT s AS step FROM r",
      words: "\"rates\" is defined in another way",
      concerns: [.update]
    ),
    SchemaChange(
      name: "a view is renamed",
      sql: "ALTER VIEW rates RENAME TO old_rates",
      undo: "ALTER VIEW old_rates RENAME TO rates",
      words: "\"rates\" is named old_rates now",
      concerns: [.update]
    ),
    SchemaChange(
      name: "a table takes the name of a view",
      sql: "DROP VIEW rates; CREATE TABLE rates AS SELECT 500 AS step",
      undo: "DROP TABLE rates; CREATE VIEW rates AS SELECT s AS step FROM r",
      words: "\"rates\" is a table now",
      concerns: [.update]
    ),
    SchemaChange(
      name: "a column of the archive is renamed",
      sql: "ALTER TABLE old RENAME COLUMN note TO text",
      undo: "ALTER TABLE old RENAME COLUMN text TO note",
      words: "\"old\" has no column note any more: it is named text now",
      concerns: [.archive]
    ),
    SchemaChange(
      name: "the archive is made again",
      sql: "ALTER TABLE old RENAME TO older; CREATE TABLE old (LIKE t)",
      undo: "DROP TABLE old; ALTER TABLE older RENAME TO old",
      words: "\"old\" is another table now: the one that the run began with is named older",
      concerns: [.archive]
    ),
    // What concerns no job.
    SchemaChange(
      name: "a view is made again",
      sql: "DROP VIEW rates; CREATE VIEW rates AS SELECT s AS step FROM r"
    ),
    SchemaChange(name: "what a view reads is renamed", sql: "ALTER TABLE r RENAME COLUMN s TO was"),
    SchemaChange(name: "an index is made", sql: "CREATE INDEX ON t (m)"),
    SchemaChange(name: "an index is dropped", sql: "DROP INDEX t_note"),
    SchemaChange(
      name: "a trigger is made",
      sql: "CREATE TRIGGER f BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()"
    ),
    SchemaChange(name: "a trigger is dropped", sql: "DROP TRIGGER first ON t"),
    SchemaChange(
      name: "a foreign key is made",
      sql: "CREATE TABLE child (t bigint REFERENCES t ON DELETE CASCADE)"
    ),
    SchemaChange(
      name: "a generated column is added",
      sql: "ALTER TABLE t ADD COLUMN g int GENERATED ALWAYS AS (m * 2) STORED"
    ),
    SchemaChange(
      name: "the key is replaced",
      sql: "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD CONSTRAINT other PRIMARY KEY (id)"
    ),
    SchemaChange(name: "a check is added", sql: "ALTER TABLE t ADD CHECK (m IS NOT NULL)"),
    SchemaChange(
      name: "the archive gets a column",
      sql: "ALTER TABLE old ADD COLUMN at timestamptz DEFAULT now()"
    ),
  ]
}

/// A job, and somebody who changes the schema while it runs.
private struct SchemaTrial {
  /// When the schema changes.
  enum Moment: CaseIterable {
    /// Before the first chunk.
    case selected
    /// Between two chunks.
    case running
    /// Between the death of the process and the next command.
    case killed
  }

  private static let count = 400
  private let change: SchemaChange
  private let action: SchemaChange.Action
  private let words: String
  private let job: SharedJob

  private var isConcerned: Bool { change.words != nil && change.concerns.contains(action) }

  init(_ change: SchemaChange, _ action: SchemaChange.Action, _ words: String) throws {
    (self.change, self.action, self.words) = (change, action, words)
    job = try SharedJob(
      rows: 0,
      """
      DROP TABLE t;
      CREATE TABLE t (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0, m int, note text, extra int);
      INSERT INTO t SELECT i, 0, i % 10, 'n' || i, i * 3 FROM generate_series(1, \(Self.count)) AS i;
      CREATE INDEX t_note ON t (note);
      CREATE TABLE copy AS SELECT * FROM t;
      CREATE TABLE old (LIKE t);
      CREATE TABLE r (s int); INSERT INTO r VALUES (1);
      CREATE VIEW rates AS SELECT s AS step FROM r;
      CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER first BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
      """
    )
    try write()
  }

  private func write() throws {
    let export: [String: Any] = ["type": "export", "format": "ndjson"]
    var step: [String: Any] = [:]
    switch action {
    case .update: step = ["type": "update", "set": ["n": "n + (SELECT step FROM rates)"]]
    case .delete: step = ["type": "delete"]
    case .archive: step = ["type": "delete", "archive": ["entity": "old"]]
    case .transform:
      try job.directory.write(
        #"""
        #!/bin/sh
        while read -r line; do
          n=${line#*'"n":'}; n=${n%%[,\}]*}
          echo "{\"n\": $((n + 1))}"
        done
        """#,
        to: "compute.sh"
      )
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o755],
        ofItemAtPath: job.directory.file("compute.sh")
      )
      step = [
        "type": "transform", "columns": ["n", "m"], "writes": ["n"], "command": ["./compute.sh"],
      ]
    case .export:
      step = export.merging(["file": "out.ndjson", "columns": ["id", "n", "m"]]) { $1 }
    case .exportAll: step = export.merging(["file": "out.ndjson"]) { $1 }
    case .exportParts: step = export.merging(["folder": "out", "columns": ["id", "n"]]) { $1 }
    }
    try job.writeJob([
      "action": step, "source": ["entity": "t", "where": "m >= 2"], "chunk": ["size": 20],
      "throttle": ["identifiersPerSecond": 800],
      "hooks": ["onStart": ["sh", "-c", "until [ -e go ]; do sleep 0.01; done"]],
    ])
  }

  /// Runs the job, and the change at a moment.
  func run(_ moment: Moment, after seconds: Double) throws {
    let other = try job.database.session()
    // Its hook keeps the run from its first chunk.
    if moment != .selected { try job.directory.write("", to: "go") }
    let process = try job.start()
    #expect(try process.event("started") != nil, "\(words)")
    if moment != .selected, process.ends(withinSeconds: seconds) {
      return try expectDone(process.wait())
    }
    if moment == .killed {
      process.send(SIGKILL)
      _ = process.wait()
      // The next process need not wait for the lease.
      if ![.export, .exportAll].contains(action) {
        try other.run("UPDATE _batch_host SET seen_at = seen_at - interval '1 hour'")
      }
      // It may have been killed after its end.
      let status = try JSONOutput.object(job.batch("status", "job.json", "--json").output)
      if status["next"] as? String == "begin" { return try expectRows() }
    }
    try other.run("BEGIN; \(change.sql); COMMIT")
    if moment == .selected { try job.directory.write("", to: "go") }
    let result = moment == .killed ? try job.start().wait() : process.wait()
    // A run may have ended before the change.
    if result.status == 0 { return try expectDone(result, isChanged: true) }
    #expect(isConcerned, "\(words): \(result.errors)")
    expectWords(result)
    guard let undo = change.undo else { return try expectRefusal() }
    if moment == .selected || seconds < 0.25 { try expectRefusal() }
    try other.run("BEGIN; \(undo); COMMIT")
    try expectDone(job.start().wait())
  }

  private func expectWords(_ result: BatchProgram.Result) {
    #expect([1, 2].contains(result.status), "\(words): \(result)")
    #expect(
      result.errors.contains("the schema has changed")
        && result.errors.contains(change.words ?? ""),
      "\(words): \(result.output)\(result.errors)"
    )
  }

  /// The same command does nothing while the change is there.
  private func expectRefusal() throws {
    expectWords(try job.start().wait())
    guard change.sql.contains("INSERT INTO t") else { return }
    try expect(
      "SELECT count(*) FROM (TABLE t INTERSECT ALL TABLE copy) AS both_of_them",
      "\(Self.count)"
    )
  }

  /// Everything is done, once.
  private func expectDone(_ result: BatchProgram.Result, isChanged: Bool = false) throws {
    #expect(result.status == 0, "\(words): \(result.output)\(result.errors)")
    let outcomes = try result.last["outcomes"] as? [String: Int]
    #expect(outcomes?["succeeded"] == Self.count * 4 / 5, "\(words): \(result.output)")
    // A change that concerns the job came after its end, and hides what it has done.
    if isChanged, isConcerned { return }
    try expectRows()
  }

  /// What the action does is in the rows, or in the files, once.
  private func expectRows() throws {
    switch action {
    case .update, .transform:
      try expect(
        "SELECT string_agg(DISTINCT (m >= 2) || ' ' || n, ', ' ORDER BY (m >= 2) || ' ' || n) FROM t",
        "false 0, true 1"
      )
      try expect("SELECT count(*) FROM t", "\(Self.count)")
    case .delete: try expect("SELECT count(*) || ' ' || max(m) FROM t", "\(Self.count / 5) 1")
    case .archive:
      try expect("SELECT count(*) || ' ' || max(m) FROM t", "\(Self.count / 5) 1")
      let columns = "id, n, m, note, extra"
      try expect(
        """
        SELECT count(*) FROM (
          SELECT \(columns) FROM old INTERSECT ALL SELECT \(columns) FROM copy WHERE m >= 2) AS both_of_them
        """,
        "\(Self.count * 4 / 5)"
      )
    case .export, .exportAll, .exportParts:
      let lines = (1...Self.count).filter { $0 % 10 >= 2 }.map { id in
        var line = "{\"id\":\(id),\"n\":0"
        if action != .exportParts { line += ",\"m\":\(id % 10)" }
        if action == .exportAll { line += ",\"note\":\"n\(id)\",\"extra\":\(id * 3)" }
        return "\(line)}\n"
      }
      #expect(try text() == lines.joined(), "\(words)")
    }
  }

  private func expect(_ sql: String, _ text: String) throws {
    let found = try job.database.text(sql)
    #expect(found == text, "\(words)")
  }

  /// What the export has written.
  private func text() throws -> String {
    func read(_ name: String) throws -> String {
      String(decoding: try job.directory.read(name), as: UTF8.self)
    }
    guard action == .exportParts else { return try read("out.ndjson") }
    let parts = try JSONOutput.object(read("out/manifest.json"))["parts"] as? [[String: Any]]
    return try (parts ?? []).map { try read("out/\($0["file"] as? String ?? "")") }.joined()
  }
}
#endif
