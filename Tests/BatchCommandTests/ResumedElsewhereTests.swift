import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Runs and undos that are stopped, and resumed after somebody has changed an index or a name.
@Suite(.timeLimit(.minutes(2))) struct ResumedElsewhereTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(60, in: directory)
  }

  private func write(_ action: [String: Any], slowly: Bool, undo: Bool = false) throws {
    var more: [String: Any] = ["action": action, "chunk": ["size": 10], "undo": undo]
    if slowly { more["throttle"] = ["identifiersPerSecond": 40] }
    try directory.write(JobText.update(adding: more), to: "job.json")
  }

  /// Gives a command, and stops it once some rows are done.
  private func stop(_ arguments: [String], once isUnderWay: () throws -> Bool) throws {
    let program = try BatchProgram(arguments, in: directory)
    while try !isUnderWay() { sched_yield() }
    #expect(program.send(SIGTERM, afterSeconds: 0))
    #expect(program.wait().status == 3)
  }

  private func count(_ condition: String) throws -> String {
    try TestDatabase.texts(path, "SELECT count(*) FROM numbers WHERE \(condition)")[0]
  }

  @Test(arguments: [true, false])
  func `a resumed undo keeps its order although a unique index was added or removed`(
    comes: Bool
  ) throws {
    let index = "CREATE UNIQUE INDEX places ON numbers (id, label)"
    if !comes { try TestDatabase.make(in: directory, index) }
    let update: [String: Any] = ["type": "update", "set": ["label": "'gone'"]]
    try write(update, slowly: false, undo: true)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    try write(update, slowly: true, undo: true)
    try stop(["undo", "job.json"]) { try count("label <> 'gone'") != "0" }
    try TestDatabase.make(in: directory, comes ? index : "DROP INDEX places")
    try write(update, slowly: false, undo: true)
    let undo = try BatchProgram.run("undo", "job.json", in: directory)
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try count("label = 'label ' || id") == "60")
  }

  @Test func `a column respelled during a run stops it until the old spelling is back`() throws {
    let delete: [String: Any] = [
      "type": "delete", "archive": ["entity": "archive", "create": true],
    ]
    try write(delete, slowly: true)
    try stop(["run", "job.json"]) { try count("1") != "60" }
    try TestDatabase.make(in: directory, "ALTER TABLE numbers RENAME COLUMN label TO Label")
    let refused = try BatchProgram.run("run", "job.json", in: directory)
    #expect(refused.status == 2 || refused.status == 1)
    #expect(refused.errors.contains("has the column Label instead of label"), "\(refused.errors)")
    try TestDatabase.make(in: directory, "ALTER TABLE numbers RENAME COLUMN Label TO label")
    try write(delete, slowly: false)
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let archived = "SELECT count(*) FROM archive WHERE label = 'label ' || id"
    #expect(try TestDatabase.texts(path, archived) == ["60"])
  }

  @Test func `a run keeps an order that differs slightly from the order of the keys`() throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE places (id TEXT PRIMARY KEY, o INTEGER, n INTEGER) WITHOUT ROWID",
      "INSERT INTO places SELECT printf('%03d', id), id, 0 FROM numbers",
      "UPDATE places SET o = 61 - o WHERE o IN (30, 31)"
    )
    let source: [String: Any] = ["entity": "places", "orderBy": ["o"]]
    try directory.write(
      JobText.export(to: "out.csv", format: "csv", adding: ["source": source]),
      to: "export.json"
    )
    let export = try BatchProgram.run("run", "export.json", in: directory)
    #expect(export.status == 0, "\(export.errors)")
    let lines = try String(contentsOfFile: directory.file("out.csv"), encoding: .utf8)
    let expected = try TestDatabase.texts(
      path,
      "SELECT id || ',' || o || ',0' FROM places ORDER BY o"
    )
    #expect(lines == (["id,o,n"] + expected).map { $0 + "\r\n" }.joined())
    let action: [String: Any] = [
      "type": "transform", "columns": ["n"], "writes": ["n"],
      "command": ["sh", "-c", "while read -r line; do echo '{\"n\": 1}'; done"],
    ]
    let transform: [String: Any] = [
      "source": source.merging(["everything": true]) { $1 }, "action": action,
    ]
    try directory.write(JobText.update(adding: transform), to: "transform.json")
    let transformed = try BatchProgram.run("run", "transform.json", in: directory)
    #expect(transformed.status == 0, "\(transformed.errors)")
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM places") == ["60"])
  }

  @Test func `a program returns an infinity as it has read it`() throws {
    try TestDatabase.make(in: directory, "CREATE TABLE reals (id INTEGER PRIMARY KEY, r REAL)")
    try TestDatabase.make(in: directory, "INSERT INTO reals VALUES (1, 9e999), (2, -9e999), (3, 1)")
    let echo = #"while read -r l; do echo "{\"r\":${l#*'"r":'}"; done"#
    for command in [
      ["sh", "-c", echo], ["sh", "-c", "\(echo.dropLast(6)) | sed s/1e999/Infinity/; done"],
    ] {
      let action: [String: Any] = [
        "type": "transform", "columns": ["r"], "writes": ["r"], "command": command,
      ]
      let source: [String: Any] = ["entity": "reals", "everything": true]
      try directory.write(
        JobText.update(adding: ["action": action, "source": source]),
        to: "job.json"
      )
      let run = try BatchProgram.run("run", "job.json", in: directory)
      #expect(run.status == 0, "\(run.errors)")
      let reals = "SELECT sum(r = 9e999) || sum(r = -9e999) || sum(r = 1.0) FROM reals"
      #expect(try TestDatabase.texts(path, reals) == ["111"])
    }
  }
}
