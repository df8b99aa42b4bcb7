import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

private final class Note: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Note.self,
    entity: "Note",
    table: "note",
    properties: [
      .attribute("id", \.id), .attribute("body", \.body), .attribute("n", \.n),
    ]
  )

  var id: String { self[\.id] }
  var body: String {
    get { self[\.body] }
    set { self[\.body] = newValue }
  }
  var n: Int {
    get { self[\.n] }
    set { self[\.n] = newValue }
  }
}

/// Objects of rows with text that is no UTF-8.
@Suite struct InvalidTextModelTests {
  private let path: String
  private let directory: TemporaryDirectory
  private let context: ModelContext

  init() async throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT NOT NULL, n INTEGER NOT NULL)",
      "INSERT INTO note VALUES (CAST(x'6be9' AS TEXT), CAST(x'20e920' AS TEXT), 1)"
    )
    context = ModelContext(
      try await ModelContainer(for: Note.self, configurations: ModelConfiguration(path: path))
    )
  }

  private func row() throws -> [String] {
    try TestDatabase.texts(
      path,
      "SELECT typeof(body) || hex(id) || ' ' || hex(body) || ' ' || n FROM note"
    )
  }

  private func note() throws -> Note { try #require(try context.fetch(Note.self).first) }

  @Test func `an object with invalid text saves other properties and keeps the bytes`() throws {
    let note = try note()
    #expect(note.body == " \u{fffd} ")
    #expect(try note.value(forKey: "body") == .invalidText([0x20, 0xe9, 0x20]))
    note.n = 2
    note.body = note.body
    try context.save()
    #expect(try row() == ["text6BE9 20E920 2"])
    #expect(!context.hasChanges)
  }

  @Test func `the error of a partly repaired invalid text names entity, property and row`() throws {
    let note = try note()
    note.n = 2
    note.body = note.body.replacing(" ", with: "")
    let error = #expect(throws: BatchError.self) { try context.save() }
    #expect(error?.code == .invalidText)
    let text = error?.description ?? ""
    #expect(text.contains("Note") && text.contains("\"body\"") && text.contains("=k%E9"), "\(text)")
    #expect(try row() == ["text6BE9 20E920 1"])
  }

  @Test func `an invalid text can be replaced by another text or by other bytes`() throws {
    let note = try note()
    note.body = "é"
    try context.save()
    #expect(try row() == ["text6BE9 C3A9 1"])
    try note.setValue(.invalidText([0xff]), forKey: "body")
    try context.save()
    #expect(try row() == ["text6BE9 FF 1"])
    note.n = 3
    try context.save()
    #expect(try row() == ["text6BE9 FF 3"])
  }

  @Test func `a reference to a row with an invalid text key has the key's bytes`() async throws {
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE use (id INTEGER PRIMARY KEY, note TEXT REFERENCES note)",
      "INSERT INTO use VALUES (1, NULL)"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let context = ModelContext(container)
    let use = try #require(try context.fetch(FetchRequest(entity: "use")).first)
    let note = try #require(try context.fetch(FetchRequest(entity: "note")).first)
    try use.setRelatedObject(note, forKey: "note")
    try context.save()
    #expect(try TestDatabase.texts(path, "SELECT hex(note) FROM use") == ["6BE9"])
    #expect(try use.relatedObject(forKey: "note") === note)
  }
}
