import BatchTestSupport
import Foundation
import Testing

/// Names that SQL, JSON, shells and file systems make something of.
private let oddNames = [
  "two words", "semi;colon", "quo\"te", "apo'strophe", "back`tick", "brack]et[", "select", "order",
  "table", "größe", "数量", "😀 emoji", "per%cent", "under_score", "_", "1st", "a.b", "a-b", "a/b",
  "back\\slash", "$dollar", ":colon", "@at", "?mark", "tab\tbed", "#hash", "--dash", "/*star*/",
  "trailing ", " leading", "NULL", "rowid", "e\u{301}", "main.numbers",
]

@Suite struct OddNamesTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

  /// Creates a database in which everything has the name.
  ///
  /// - Returns: The names of the database and of the folder's other files.
  private func make(_ name: String) throws -> String {
    let file = name.replacing("/", with: "_") + ".db"
    let (table, column) = (quoted(name), quoted(name))
    let archive = quoted("\(name) archive")
    try TestDatabase.make(
      file,
      in: directory,
      "CREATE TABLE \(table) (\(quoted("key \(name)")) TEXT PRIMARY KEY, \(column) INTEGER)",
      "CREATE TABLE \(archive) (\(quoted("key \(name)")) TEXT, \(column) INTEGER)",
      "INSERT INTO \(table) VALUES ('a', 1), ('b', 2), ('c', 3), ('😀', 4)"
    )
    return file
  }

  private func succeed(
    _ arguments: [String],
    _ location: SourceLocation = #_sourceLocation
  ) throws -> String {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == 0, "\(arguments): \(result.errors)", sourceLocation: location)
    return result.output
  }

  @Test(arguments: oddNames) func `a job runs with arbitrary names`(name: String) throws {
    let database = try make(name)
    let path = directory.file(database)
    let job = "\(database).json"

    let update = try JobText.update(
      [name: "\(quoted(name)) * 10"],
      where: "\(quoted(name)) > 1",
      entity: name,
      database: database
    )
    try directory.write(update, to: job)
    _ = try succeed(["plan", "./\(job)", "--json"])
    _ = try succeed(["run", "./\(job)"])
    let values = "SELECT group_concat(\(quoted(name)), ' ') FROM"
    #expect(try TestDatabase.texts(path, "\(values) \(quoted(name))") == ["1 20 30 40"])
    #expect(try succeed(["ids", "./\(job)", "--count"]) == "3\n")
    #expect(try succeed(["ids", "./\(job)"]).split(separator: "\n").count == 3)
    let status = try JSONOutput.object(succeed(["status", "./\(job)", "--json"]))
    #expect(status["checkpoint"] as? String == "./\(database).batch")

    let output = "\(database).out"
    let export = try JobText.export(to: output, entity: name, database: database)
    try directory.write(export, to: "export.json")
    _ = try succeed(["run", "export.json"])
    let lines = try JSONOutput.lines(String(decoding: directory.read(output), as: UTF8.self))
    #expect(lines.compactMap { $0[name] as? Int } == [1, 20, 30, 40])
    #expect(lines.compactMap { $0["key \(name)"] as? String } == ["a", "b", "c", "😀"])

    let delete = try JobText.delete(
      archive: "\(name) archive",
      where: "\(quoted(name)) >= 30",
      entity: name,
      database: database
    )
    try directory.write(delete, to: "delete.json")
    _ = try succeed(["run", "delete.json"])
    #expect(try TestDatabase.texts(path, "\(values) \(quoted(name))") == ["1 20"])
    #expect(try TestDatabase.texts(path, "\(values) \(quoted("\(name) archive"))") == ["30 40"])

    let schema = try JSONOutput.object(succeed(["schema", "./\(database)", "--json"]))
    let entities = schema["entities"] as? [[String: Any]]
    #expect(entities?.map { $0["name"] as? String ?? "" } == [name, "\(name) archive"].sorted())
  }

  @Test func `an error shows a wrong name on one line without escapes`() throws {
    try TestDatabase.makeNumbers(1, in: directory)
    for name in ["a\nb", "\u{1b}[31mred", "a\u{202e}b", String(repeating: "long", count: 100)] {
      try Refusal.ofEveryCommand(
        JobText.update(entity: name),
        in: directory,
        says: ["there is no entity"]
      )
      try Refusal.ofEveryCommand(JobText.update([name: "1"]), in: directory, says: ["has no"])
      try Refusal.ofEveryCommand(
        JobText.update(database: "\(name).db"),
        in: directory,
        says: [".db"]
      )
    }
  }
}
