import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A class that implements all hooks and records their calls.
final class Article: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Article.self,
    entity: "Article",
    table: "articles",
    properties: [
      .attribute("title", \.title), .attribute("words", \.words), .attribute("saves", \.saves),
      .toOne("parent", \.parent, column: "parent_id", inverse: "parts"),
      .toMany("parts", \.parts, inverse: "parent", onDelete: .cascade),
    ]
  )

  var title: String {
    get { self[\.title] }
    set { self[\.title] = newValue }
  }
  var words: Int {
    get { self[\.words] }
    set { self[\.words] = newValue }
  }
  var saves: Int {
    get { self[\.saves] }
    set { self[\.saves] = newValue }
  }
  var parent: Article? {
    get { self[\.parent] }
    set { self[\.parent] = newValue }
  }
  var parts: [Article] {
    get { self[\.parts] }
    set { self[\.parts] = newValue }
  }

  /// The hooks called, in order.
  var calls: [String] = []
  /// What `willSave` does besides counting.
  var onSave: ((Article) -> Void)?

  convenience init(_ title: String, words: Int = 0) {
    self.init()
    self.title = title
    self.words = words
  }

  override func willSave() {
    calls.append("willSave")
    if !isDeleted { saves += 1 }
    onSave?(self)
  }

  override func didSave() {
    calls.append("didSave \(persistentModelID.isTemporary ? "temporary" : "permanent")")
  }

  override func willDelete() { calls.append("willDelete \(title)") }

  override func validate() throws {
    calls.append("validate")
    var problems = ModelValidationError()
    if title.isEmpty { problems.add(\Article.title, "must not be empty") }
    if words < 0 { problems.add(\Article.words, "must not be negative") }
    if words > 1_000 { problems.add("it is too long") }
    if title == "secret" { throw CancellationError() }
    try problems.throwIfAny()
  }
}

@Suite struct HookConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      "press.db",
      in: directory,
      """
      CREATE TABLE articles (id INTEGER PRIMARY KEY, title TEXT, words INTEGER DEFAULT 0 CHECK (words <> 13),
        saves INTEGER NOT NULL DEFAULT 0, parent_id INTEGER REFERENCES articles)
      """,
      "INSERT INTO articles VALUES (1, 'one', 10, 0, NULL), (2, 'two', 20, 0, 1)"
    )
  }

  private func open() async throws -> ModelContext {
    ModelContext(
      try await ModelContainer(for: Article.self, configurations: ModelConfiguration(path: path))
    )
  }

  private func rows() throws -> [String] {
    try TestDatabase.texts(path, "SELECT title || ' ' || saves FROM articles ORDER BY id")
  }

  @Test func `C141 willSave is called once per save, and its changes are saved`() async throws {
    let context = try await open()
    let new = Article("new")
    context.insert(new)
    let one = try #require(context.fetch(Article.self, limit: 1).first)
    one.words = 11
    try context.save()
    #expect(new.calls == ["willSave", "validate", "didSave permanent"])
    #expect(one.calls == new.calls)
    #expect(one.saves == 1 && !context.hasChanges)
    #expect(try rows() == ["one 1", "two 0", "new 1"])
    try context.save()
    #expect(new.calls.count == 3)
    // The change that it makes to another object is saved, and that object's hook is called.
    let two = try #require(one.parts.first)
    one.onSave = { $0.parts.first?.title = "second" }
    one.words = 12
    try context.save()
    #expect(two.calls == ["willSave", "validate", "didSave permanent"])
    #expect(try rows() == ["one 2", "second 1", "new 1"])
  }

  @Test func `C142 endless changes by willSave and saving in it are errors`() async throws {
    let context = try await open()
    func spawn(_ article: Article) {
      let next = Article("next")
      next.onSave = spawn
      article.modelContext?.insert(next)
    }
    let first = Article("first")
    first.onSave = spawn
    context.insert(first)
    var error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .endlessHooks && error.message.contains("Article"))
    #expect(try rows().count == 2)
    context.rollback()
    let other = Article("other")
    var code: BatchError.Code?
    other.onSave = { article in
      do { try article.modelContext?.save() } catch { code = (error as? BatchError)?.code }
    }
    context.insert(other)
    try context.save()
    #expect(code == .nestedSave)
    // The save reports what a hook cannot set.
    other.onSave = { $0["saves"] = .text("many") }
    other.words = 1
    error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .valueMismatch)
  }

  @Test func `C143 didSave is called once everything is committed, and not if a save fails`()
    async throws
  {
    let context = try await open()
    let new = Article("new")
    context.insert(new)
    let other = try Connection(path: path)
    try other.execute(
      "CREATE TRIGGER t BEFORE INSERT ON articles BEGIN SELECT RAISE(ABORT, 'closed'); END"
    )
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.place == "new Article" && error.message == "closed")
    #expect(new.calls == ["willSave", "validate"])
    try other.execute("DROP TRIGGER t")
    let one = try #require(context.fetch(Article.self, limit: 1).first)
    context.delete(try #require(one.parts.first))
    let deleted = try #require(context.deletedModelsArray.first as? Article)
    try context.save()
    #expect(new.calls.last == "didSave permanent")
    #expect(deleted.calls == ["willDelete two", "willSave", "didSave permanent"])
  }

  @Test func `C144 willDelete is called for objects deleted by hand or by a rule`() async throws {
    let context = try await open()
    let one = try #require(context.fetch(Article.self, limit: 1).first)
    let two = try #require(one.parts.first)
    context.delete(one)
    #expect(one.calls == ["willDelete one"])
    context.delete(one)
    #expect(one.calls.count == 1)
    try context.save()
    #expect(two.calls.first == "willDelete two")
    #expect(try rows().isEmpty)
    let new = Article("new")
    context.insert(new)
    context.delete(new)
    #expect(new.calls == ["willDelete new"] && !context.hasChanges)
  }

  @Test func `C145 all validation problems are reported together, by object and property`()
    async throws
  {
    let context = try await open()
    let articles = try context.fetch(Article.self)
    articles[0].title = ""
    articles[0].words = -1
    articles[1].words = 2_000
    let new = Article("secret")
    context.insert(new)
    let fine = Article("fine")
    context.insert(fine)
    let unlucky = Article("unlucky", words: 13)
    context.insert(unlucky)
    let error = try #require(throws: BatchError.self) { try context.save() }
    #expect(error.code == .validationFailed)
    let problems = error.saveProblems
    #expect(
      problems.map(\.message) == [
        "property \"title\" must not be empty (it is '')",
        "property \"words\" must not be negative (it is -1)", "it is too long",
        "CancellationError()", "property \"words\" is 13, which CHECK (words <> 13) refuses",
      ],
      "\(problems)"
    )
    #expect(problems.map(\.property) == ["title", "words", nil, nil, "words"])
    #expect(problems[0].identifier == articles[0].persistentModelID)
    #expect(problems[0].value == .text("") && problems[1].value == .integer(-1))
    #expect(problems[3].object == "new Article")
    #expect(try rows() == ["one 0", "two 0"])
    #expect(context.insertedModelsArray == [new, fine, unlucky])
    articles[0].title = "one"
    articles[0].words = 1
    articles[1].words = 1
    context.delete(new)
    context.delete(unlucky)
    try context.save()
    #expect(try rows().count == 3)
  }

  @Test func `C146 deleted objects are not validated, and errors of the store are no problems`()
    async throws
  {
    let context = try await open()
    let one = try #require(context.fetch(Article.self, limit: 1).first)
    one.words = -1
    context.delete(one)
    try context.save()
    #expect(!one.calls.contains("validate"))
    #expect(ModelValidationError("wrong").description == "wrong")
    #expect(ModelValidationError(property: "title", "is odd").description == "title is odd")
    var error = ModelValidationError(\Article.words, "must be even")
    error.add(property: "title", "is odd")
    #expect(error.description == "words must be even; title is odd")
    #expect(error.problems.count == 2)
  }
}
