import BatchTestSupport
import Foundation
import Testing

/// Tables whose only key is computed from other columns, as the identifier in a JSON document is.
@Suite struct GeneratedKeyTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      """
      CREATE TABLE documents (body TEXT, n INTEGER DEFAULT 0,
        id TEXT GENERATED ALWAYS AS (json_extract(body, '$.id')) STORED NOT NULL UNIQUE)
      """,
      """
      WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 250)
      INSERT INTO documents (body) SELECT json_object('id', 'd' || i, 'next', 'd' || (i + 1)) FROM c
      """
    )
  }

  private func rows() throws -> [String] {
    try TestDatabase.texts(path, "SELECT id || n || body FROM documents ORDER BY id")
  }

  private func write(_ text: String) throws { try directory.write(text, to: "job.json") }

  private func run(_ command: String) throws -> BatchProgram.Result {
    try BatchProgram.run(command, "job.json", in: directory)
  }

  @Test func `undeleted rows get their generated keys from SQLite again`() throws {
    let before = try rows()
    let more: [String: Any] = ["undo": true, "chunk": ["size": 60]]
    try write(JobText.delete(where: "body NOT LIKE '%7%'", entity: "documents", adding: more))
    let deletion = try run("run")
    #expect(deletion.status == 0, "\(deletion.errors)")
    #expect(try rows() != before)
    let undo = try run("undo")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try rows() == before)
  }

  @Test func `a change that keeps generated keys is made and undone`() throws {
    let before = try rows()
    let set = ["body": "json_set(body, '$.seen', 1)", "n": "n + 1"]
    try write(JobText.update(set, where: "1", entity: "documents", adding: ["undo": true]))
    let update = try run("run")
    #expect(update.status == 0, "\(update.errors)")
    let changed = try TestDatabase.texts(path, "SELECT count(*) FROM documents WHERE n = 1")
    #expect(changed == ["250"])
    let undo = try run("undo")
    #expect(undo.status == 0, "\(undo.errors)")
    #expect(try rows() == before)
  }

  @Test(arguments: ["'new ' || (body ->> 'id')", "'x' || (body ->> 'next')"])
  func `a change of generated keys is refused before the first chunk`(
    id: String
  ) throws {
    let before = try rows()
    let set = ["body": "json_set(body, '$.id', \(id))"]
    let more: [String: Any] = ["undo": true, "chunk": ["size": 60], "skip": ["limit": 1000]]
    try write(JobText.update(set, where: "1", entity: "documents", adding: more))
    let update = try run("run")
    #expect(update.status == 1)
    #expect(update.errors.contains("another key: id is computed from what the job sets"))
    #expect(try rows() == before)
  }
}
