import BatchTestSupport
import Foundation
import Testing

/// A database with tables of which SQLite knows neither collation, module nor function, beside the one
/// that a job changes.
@Suite(.timeLimit(.minutes(10))) struct UnknownSchemaTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(500, in: directory)
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE labels (label TEXT PRIMARY KEY COLLATE NOCASE, n INTEGER) WITHOUT ROWID",
      "CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, hash AS (hex(name)))",
      "CREATE UNIQUE INDEX topic_names ON topics (name)",
      "CREATE TABLE checked (a, CHECK (hex(a) <> ''))",
      "CREATE VIRTUAL TABLE found USING fts5 (label, tokenize = 'porter')",
      "CREATE VIRTUAL TABLE areas USING rtree (id, low, high)",
      "CREATE VIEW sorted AS SELECT id, title_sort(label) AS s FROM numbers",
      "CREATE TRIGGER topic AFTER UPDATE ON topics BEGIN SELECT title_sort(new.name); END",
      "CREATE TABLE loose (rowid, _rowid_, oid)",
      "INSERT INTO labels SELECT label, id FROM numbers WHERE id <= 30",
      "INSERT INTO topics (name) SELECT label FROM labels",
      "INSERT INTO found (label) SELECT label FROM numbers",
      "INSERT INTO loose VALUES (1, 2, 3)"
    )
    for (from, to) in [
      ("NOCASE", "unicase"), ("hex", "hash"), ("porter", "signal"), ("USING rtree", "USING areas"),
    ] {
      try TestDatabase.rename(from, to, inSchemaOf: path)
    }
    try FileManager.default.copyItem(atPath: path, toPath: directory.file("before.db"))
  }

  @discardableResult
  private func run(
    _ arguments: String...,
    status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> BatchProgram.Result {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(
      result.status == status,
      "\(arguments): \(result.output) \(result.errors)",
      sourceLocation: location
    )
    return result
  }

  private let notes = [
    "the rows of \"labels\" were not compared: no such collation sequence: unicase",
    "the rows of \"loose\" were not compared: columns use all names of its rowid",
  ]

  @Test func `a job runs beside an unreadable view and names what cannot be compared`() throws {
    try directory.write(
      JobText.update(where: "id % 2 = 0", adding: ["undo": true]),
      to: "job.json"
    )
    for command in ["validate", "plan"] { try run(command, "job.json") }
    let rehearsal = try run("rehearse", "job.json")
    for note in notes { #expect(rehearsal.errors.contains(note), "\(rehearsal.errors)") }
    try run("run", "job.json")
    let sum = "SELECT sum(n) FROM numbers"
    #expect(try TestDatabase.texts(path, sum) == ["250"])
    let verification = try run("verify", "job.json", "--against", "before.db")
    for note in notes { #expect(verification.errors.contains(note), "\(verification.errors)") }
    #expect(verification.output.contains("set as computed: 250 rows in numbers.n"))
    let record = try run("verify", "job.json")
    #expect(record.output.contains("compared with what it set: n"), "\(record.output)")
    let object = try JSONOutput.object(run("verify", "job.json", "--json").output)
    #expect(object["comparedColumns"] as? [String] == ["n"])

    // What can be compared is.
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = 'other' WHERE id = 3")
    let found = try run("verify", "job.json", "--against", "before.db", status: 1)
    #expect(found.output.contains("numbers id = 3: label: 'label 3' → 'other'"))
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = 'label 3' WHERE id = 3")
    try run("undo", "job.json")
    #expect(try TestDatabase.texts(path, sum) == ["0"])
    let schema = try run("schema", "test.db")
    for name in [
      "numbers: 500 rows", "topics: 30 rows", "labels: not readable", "sorted (view): not",
    ] {
      #expect(schema.output.contains(name), "\(schema.output)")
    }
  }

  @Test func `the error of a key with an unknown collation names the column`() throws {
    // With `where`, SQLite says only "no query solution" of a table without rowids.
    for condition in ["1", "label > 'x'"] {
      try directory.write(
        JobText.export(to: "out.ndjson", where: condition, entity: "labels"),
        to: "labels.json"
      )
      let refused = try run("run", "labels.json", status: 2)
      #expect(
        refused.errors.contains(
          #"no such collation sequence: unicase, which the column "label" of "labels" uses"#
        ),
        "\(refused.errors)"
      )
    }
  }
}
