import BatchTestSupport
import Testing

/// A schema of another program that needs what SQLite does not have here, and what an error says of it.
private struct ForeignSchema: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var statements: [String]
  /// A function, collation or tokenizer of SQLite, and the name that takes its place in the schema.
  var renamed: (from: String, to: String)?
  /// The job's action; by default it sets `n` of `numbers`.
  var job: @Sendable () throws -> String = { try JobText.update() }
  /// What the error says of the object.
  var says: String

  static let all: [Self] = [
    .init(
      testDescription: "an update trigger calls a function, as does an insert trigger",
      statements: [
        "CREATE TRIGGER made AFTER INSERT ON numbers BEGIN UPDATE numbers SET label = sorted(label); END",
        "CREATE TRIGGER changed AFTER UPDATE ON numbers BEGIN UPDATE numbers SET label = sorted(label); END",
      ],
      says: #"no such function: sorted, which the trigger "changed" of "numbers" calls; "#
    ),
    .init(
      testDescription: "a condition of a trigger calls a function",
      statements: [
        "CREATE TRIGGER changed AFTER UPDATE OF n ON numbers WHEN sorted(new.n) BEGIN SELECT 1; END"
      ],
      says: #"no such function: sorted, which the trigger "changed" of "numbers" calls; "#
    ),
    .init(
      testDescription:
        "a trigger that a trigger fires calls a function, as does one of another table",
      statements: [
        "CREATE TABLE log (n)", "CREATE TABLE other (n)",
        "CREATE TRIGGER changed AFTER UPDATE ON numbers BEGIN INSERT INTO log VALUES (new.n); END",
        "CREATE TRIGGER logged AFTER INSERT ON log BEGIN SELECT sorted(new.n); END",
        "CREATE TRIGGER other AFTER UPDATE ON other BEGIN SELECT sorted(new.n); END",
      ],
      says: #"no such function: sorted, which the trigger "logged" of "log" calls; "#
    ),
    .init(
      testDescription: "a trigger behind a cascade calls a function",
      statements: [
        "CREATE TABLE parts (id INTEGER PRIMARY KEY, n REFERENCES numbers (id) ON DELETE CASCADE)",
        "CREATE TRIGGER gone AFTER DELETE ON parts BEGIN SELECT sorted(old.n); END",
      ],
      job: {
        try JobText.delete(adding: ["database": ["path": "test.db", "foreignKeys": true]])
      },
      says: #"no such function: sorted, which the trigger "gone" of "parts" calls; "#
    ),
    .init(
      testDescription: "a view of a view calls a function",
      statements: [
        "CREATE VIEW inside AS SELECT id, sorted(label) AS label FROM numbers",
        "CREATE VIEW outside AS SELECT id, label FROM inside",
      ],
      job: { try JobText.export(to: "out.ndjson", entity: "outside") },
      says: #"no such function: sorted, which the view "inside" calls; "#
    ),
    .init(
      testDescription: "a generated column calls a function",
      statements: ["ALTER TABLE numbers ADD COLUMN sort AS (hex(label))"],
      renamed: ("hex", "sorted"),
      job: { try JobText.export(to: "out.ndjson") },
      says: #": sorted(), which the column "sort" of "numbers" calls; "#
    ),
    .init(
      testDescription: "a CHECK calls a function",
      statements: [
        "DROP TABLE numbers",
        "CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER, CHECK (abs(n) >= 0))",
        "INSERT INTO numbers VALUES (1, 2)",
      ],
      renamed: ("abs", "checked"),
      says: #": checked(), which a constraint of "numbers" calls; "#
    ),
    .init(
      testDescription: "an index calls a function",
      statements: ["CREATE INDEX by_sort ON numbers (hex(n))"],
      renamed: ("hex", "sorted"),
      says: #": sorted(), which the index "by_sort" of "numbers" calls; "#
    ),
    .init(
      testDescription: "an index has a collation",
      statements: ["CREATE INDEX by_name ON numbers (n COLLATE NOCASE)"],
      renamed: ("NOCASE", "unicase"),
      says: #"no such collation sequence: unicase, which the index "by_name" of "numbers" uses; "#
    ),
    .init(
      testDescription: "a trigger names a table that is gone",
      statements: [
        "CREATE TRIGGER changed AFTER UPDATE ON numbers BEGIN DELETE FROM track_old; END"
      ],
      says: #"no such table: main.track_old, which the trigger "changed" of "numbers" refers to; "#
    ),
    .init(
      testDescription: "a trigger names a column that is gone",
      statements: [
        "CREATE TRIGGER changed AFTER UPDATE ON numbers BEGIN SELECT new.note; END"
      ],
      says: #"no such column: new.note, which the trigger "changed" of "numbers" refers to; "#
    ),
    .init(
      testDescription: "a foreign key refers to a table that is gone",
      statements: ["ALTER TABLE numbers ADD COLUMN list REFERENCES lists (id)"],
      job: {
        try JobText.update(
          ["list": "1"],
          adding: ["database": ["path": "test.db", "foreignKeys": true]]
        )
      },
      says: #"no such table: main.lists, which the column "list" of "numbers" refers to; "#
    ),
    .init(
      testDescription: "a full-text index has a tokenizer",
      statements: [
        "CREATE VIRTUAL TABLE found USING fts5 (label, tokenize = 'porter ascii')",
        "CREATE TRIGGER changed AFTER UPDATE ON numbers BEGIN DELETE FROM found; END",
      ],
      renamed: ("porter", "signal"),
      says: #"no such tokenizer: signal, which the virtual table "found" uses; "#
    ),
    .init(
      testDescription: "a virtual table has the name of its module, which is missing",
      statements: [
        "CREATE VIRTUAL TABLE found USING fts5 (label)"
      ],
      renamed: ("USING fts5", "USING found"),
      job: { try JobText.export(to: "out.ndjson", entity: "found") },
      says: #"no such module: found, which the virtual table "found" uses; "#
    ),
  ]
}

@Suite(.timeLimit(.minutes(5))) struct MissingObjectTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func make(_ schema: ForeignSchema) throws {
    let path = try TestDatabase.makeNumbers(3, in: directory)
    for statement in schema.statements {
      try TestDatabase.make(in: directory, statement)
    }
    guard let (from, to) = schema.renamed else { return }
    try TestDatabase.rename(from, to, inSchemaOf: path)
  }

  @Test(arguments: ForeignSchema.all)
  fileprivate func `the error of a missing object names the schema object that needs it`(
    schema: ForeignSchema
  ) throws {
    try make(schema)
    let values = "SELECT group_concat(n) FROM numbers NOT INDEXED"
    let before = try TestDatabase.texts(directory.file("test.db"), values)
    try directory.write(schema.job(), to: "job.json")
    let result = try BatchProgram(["run", "job.json"], in: directory).wait()
    #expect([1, 2].contains(result.status))
    #expect(result.errors.contains(schema.says), "\(result.errors)")
    #expect(try TestDatabase.texts(directory.file("test.db"), values) == before)
  }

  @Test func `the error of a missing function blames the job's own expression that calls it`()
    throws
  {
    try TestDatabase.makeNumbers(3, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TRIGGER changed AFTER UPDATE ON numbers BEGIN SELECT sorted(new.n); END"
    )
    try Refusal.ofEveryCommand(
      JobText.update(["n": "sorted(n)"]),
      in: directory,
      says: ["no such function: sorted in the expression `sorted(n)`"]
    )
  }

  @Test func `the schema says why a view cannot be read and shows the other tables`() throws {
    try TestDatabase.makeNumbers(3, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE VIEW sorted AS SELECT id, title_sort(label) FROM numbers",
      "CREATE VIEW gone AS SELECT * FROM missing"
    )
    let result = try BatchProgram(["schema", "test.db"], in: directory).wait()
    #expect(result.status == 0)
    #expect(result.output.contains("numbers: 3 rows"))
    let words = result.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(words.contains(#"no such function: title_sort, which the view "sorted" calls;"#))
    #expect(words.contains(#"no such table: main.missing, which the view "gone" refers to;"#))
  }
}

/// Indexes that contradict the rows which they index.
@Suite(.timeLimit(.minutes(5))) struct FullTextIndexTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  @Test func `the error of an outdated full-text index names it, and the run resumes once rebuilt`()
    throws
  {
    let path = try TestDatabase.makeNumbers(300, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE VIRTUAL TABLE other USING fts5 (label)",
      "CREATE VIRTUAL TABLE found USING fts5 (label, content = 'numbers', content_rowid = 'id')",
      "INSERT INTO found (rowid, label) SELECT id, label FROM numbers WHERE id <= 50",
      """
      CREATE TRIGGER gone AFTER DELETE ON numbers BEGIN
        INSERT INTO found (found, rowid, label) VALUES ('delete', old.id, old.label);
      END
      """
    )
    let job = try JobText.delete(where: "id % 3 = 0", adding: ["chunk": ["size": 10]])
    try directory.write(job, to: "job.json")
    let failed = try BatchProgram(["run", "job.json"], in: directory).wait()
    #expect(failed.status == 1)
    let repair = #"INSERT INTO "found"("found") VALUES('rebuild')"#
    let says = #"the full-text index "found" is out of step with its rows"#
    #expect(failed.errors.contains(says), "\(failed.errors)")
    #expect(failed.errors.contains(repair), "\(failed.errors)")
    #expect(!failed.errors.contains("backup"), "\(failed.errors)")

    try TestDatabase.make(in: directory, repair)
    let resumed = try BatchProgram(["run", "job.json"], in: directory).wait()
    #expect(resumed.status == 0, "\(resumed.errors)")
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers") == ["200"])
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE id % 3 = 0") == ["0"])
    let found = "SELECT count(*) FROM found WHERE found MATCH 'label'"
    #expect(try TestDatabase.texts(path, found) == ["200"])
  }

  @Test(arguments: [
    (
      "CREATE VIRTUAL TABLE found USING fts5 (label, content = '')", "found_data WHERE id > 1",
      #"full-text index "found" is out of step with its rows"#, #"drop "found", then make"#
    ),
    (
      "CREATE VIRTUAL TABLE found USING fts4 (label)", "found_segdir",
      #"full-text index "found" is out of step with its rows"#,
      #"rebuild it: INSERT INTO "found"("found") VALUES('rebuild')"#
    ),
    (
      "CREATE VIRTUAL TABLE found USING rtree (label, low, high)", "found_node",
      #"virtual table "found" is out of step with its rows"#, #"drop "found", then make"#
    ),
  ])
  func `a damaged virtual table is not reported as a damaged database`(
    table: String,
    lost: String,
    says: String,
    remedy: String
  ) throws {
    let path = try TestDatabase.makeNumbers(10, in: directory)
    let insertion =
      table.contains("rtree")
      ? "INSERT INTO found SELECT id, id, id + 1 FROM numbers"
      : "INSERT INTO found (rowid, label) SELECT id, label FROM numbers"
    try TestDatabase.make(in: directory, table, insertion)
    if table.contains("fts4") {
      // A posting list that ends too early.
      try TestDatabase.make(in: directory, "UPDATE found_segdir SET root = x'0003'")
    } else {
      try TestDatabase.make(in: directory, "DELETE FROM \(lost)")
    }
    let change =
      switch true {
      case table.contains("rtree"): "DELETE FROM found WHERE label = new.id"
      case table.contains("fts4"): "DELETE FROM found WHERE found MATCH 'label'"
      default:
        "INSERT INTO found (found, rowid, label) VALUES ('delete', new.id, new.label)"
      }
    try TestDatabase.make(
      in: directory,
      "CREATE TRIGGER changed AFTER UPDATE ON numbers BEGIN \(change); END"
    )
    try directory.write(JobText.update(), to: "job.json")
    let result = try BatchProgram(["run", "job.json"], in: directory).wait()
    #expect([1, 2].contains(result.status))
    #expect(result.errors.contains(says), "\(result.errors)")
    #expect(result.errors.contains(remedy), "\(result.errors)")
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM numbers") == ["0"])
  }
}
