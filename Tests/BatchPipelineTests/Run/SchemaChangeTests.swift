import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// Others change the schema at any moment of a run, at random.
///
/// Either the run completes, and the rows are as one statement makes them; or it stops, says what
/// has changed, and completes when that is undone.
@Suite(.timeLimit(.minutes(20))) struct SchemaChangeTests {
  /// The number of trials; `BATCH_SEQUENCES` increases it.
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 24
  /// The first seed.
  private static let first = UInt64(ProcessInfo.processInfo.environment["BATCH_SEED"] ?? "") ?? 0

  @Test(arguments: first..<first + count)
  func `a run over a changing schema completes or stops with a true report`(
    seed: UInt64
  ) async throws {
    try await Trial(seed: seed).perform()
  }

  private enum Moment: Sendable, Equatable {
    case selected
    case computing(Int)
    case chunk(Int)
    case stopped(afterChunk: Int)
    case undoing
    case undone(chunk: Int)
  }

  private enum Action: String, CaseIterable {
    case update, delete, archive, csv, ndjson, transform, objects, removal
  }

  /// One run and one change.
  private final class Trial: Sendable {
    private let directory: TemporaryDirectory
    private let path: String
    private let description: String
    private let action: Action
    private let source: String
    private let condition: String?
    private let recheck: Recheck
    private let undoes: Bool
    private let moment: Moment
    private let change: SchemaChange
    private let key: [String]
    private let initial: DatabaseSnapshot
    private let made = Lock<(before: DatabaseSnapshot, after: DatabaseSnapshot)?>(nil)
    private let calls = Lock(0)

    init(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed)
      directory = try TemporaryDirectory()
      path = try TestDatabase.make(in: directory)
      let connection = try Connection(path: path)
      let table = ChangingTable(using: &random)
      try table.make(in: connection, using: &random)
      key = table.key
      let action = Action.allCases.randomElement(using: &random) ?? .update
      self.action = action
      let exports = action == .csv || action == .ndjson
      source = exports ? ["t", "v", "query"].randomElement(using: &random) ?? "t" : "t"
      let conditions = [
        nil, "a % 3 <> 0", "k IN (SELECT t_k FROM d)", "k IN (SELECT k FROM v WHERE a > 4)",
      ]
      condition =
        source == "t" ? conditions.randomElement(using: &random) ?? nil : nil
      recheck = Bool.random(using: &random) ? .row : .off
      let isOfObjects = action == .objects || action == .removal
      let isHidden = table.tail != ") WITHOUT ROWID" && table.keyTypes[0] != "INTEGER PRIMARY KEY"
      // A run by objects knows rows by their rowids, which a new table need not keep.
      undoes = !exports && !(isOfObjects && isHidden) && Bool.random(using: &random)
      let chunk = Int.random(in: 1...4, using: &random)
      var moments: [Moment] = [.selected, .chunk(chunk), .stopped(afterChunk: chunk)]
      if [.transform, .objects, .removal].contains(action) { moments.append(.computing(chunk)) }
      if undoes { moments += [.undoing, .undone(chunk: chunk)] }
      moment = moments.randomElement(using: &random) ?? .selected
      if action == .archive {
        try connection.execute(
          ChangingTable.create("old", table.columns, table.tail.replacing("UNIQUE", with: ""))
        )
      } else {
        try connection.execute("CREATE TABLE old (a)")
      }
      change = SchemaChange.random(table, using: &random)
      initial = try DatabaseSnapshot(connection)
      description =
        "seed \(seed): \(action.rawValue) of \(source) (\(table.columns.map(\.sql))\(table.tail) where"
        + " \(condition ?? "everything"), recheck \(recheck), undo \(undoes); \(change) at \(moment)"
    }

    // MARK: The run

    private var job: Job {
      let isDynamic = source == "query"
      let columns = isDynamic ? key + ["a", "b"] : nil
      let file = FilePath(directory.file("out"))
      let work: Job.Action =
        switch action {
        case .update: .update(.init(set: [.init("a", to: "a + 100"), .init("b", to: "b || '!'")]))
        case .delete: .delete(.init())
        case .archive: .delete(.init(archive: "old"))
        case .csv: .export(.init(file: file, format: .csv, columns: columns))
        case .ndjson: .export(.init(file: file, format: .ndjson, columns: columns))
        default: .transform(.init(columns: ["a", "b"], writes: ["a"], program: .handler("h")))
        }
      let query = "SELECT \(key.joined(separator: ", ")), a, b FROM t WHERE a > 4"
      var job = Job.test(
        in: directory,
        isDynamic
          ? .init(query: query, key: key)
          : .init(
            entity: source,
            where: condition,
            everything: condition == nil,
            recheck: recheck
          ),
        work,
        chunk: 7,
        workers: 2
      )
      job.retry.limit = 0
      if undoes { job.undo = .init() }
      return job
    }

    private var checkpoint: FilePath { FilePath(directory.file("objects.batch")) }

    private func run() async throws -> BatchRun {
      guard action == .objects || action == .removal else {
        let handler = TransformHandler.rows { columns in
          let (a, b) = (
            try columns.input("a", as: Int64.self), try columns.input("b", as: String.self)
          )
          let new = try columns.output("a", as: Int64.self)
          return { row in
            try self.compute()
            _ = try row[b]
            if let a = try row[a] { row.set(new, to: a + 100) }
          }
        }
        return BatchRun(job, options: .telling, handlers: ["h": handler])
      }
      var policy = RunPolicy(chunk: .init(size: 7), workers: 2)
      policy.retry.limit = 0
      policy.checkpoint.path = checkpoint
      let removes = action == .removal
      return BatchRun(
        try await ModelContainer(configurations: ModelConfiguration(path: path)),
        named: "objects",
        fetching: FetchRequest(entity: "t", where: condition),
        policy: policy,
        undo: undoes ? .init() : nil,
        options: .telling
      ) { context, identifiers in
        let objects = try context.fetch(
          identifiers,
          as: ManagedObject.self,
          skippingMissing: true
        )
        try self.compute()
        for object in objects {
          if removes {
            context.delete(object)
          } else if case .integer(let a) = object["a"] {
            object["a"] = .integer(a + 100)
          }
        }
      }
    }

    private func undo() throws -> BatchRun {
      let isOfObjects = action == .objects || action == .removal
      return isOfObjects
        ? try BatchRun(undoingRunAt: checkpoint, options: .telling)
        : BatchRun(undoing: job, options: .telling)
    }

    // MARK: The change

    private func compute() throws {
      let call = calls.withLock { calls in
        calls += 1
        return calls
      }
      if case .computing(let number) = moment, call >= number { try changeOnce() }
    }

    private func changeOnce() throws {
      try made.withLock { made in
        if made == nil { made = try change.make(in: Connection(path: path)) }
      }
    }

    private func changeNow() {
      do { try changeOnce() } catch { Issue.record("\(description): \(error)") }
    }

    /// Runs until the end or the first error, with the change at its moment.
    private func attempt(_ run: BatchRun, undoes: Bool) async -> Result<RunState, BatchError> {
      let chunks = Lock(0)
      do throws(BatchError) {
        let summary = try await run.run { event in
          switch (event, self.moment) {
          case (.started, .selected) where !undoes: self.changeNow()
          case (.progress, .chunk(let number)) where !undoes,
            (.progress, .undone(let number)) where undoes:
            let chunk = chunks.withLock { chunks in
              chunks += 1
              return chunks
            }
            if chunk == number { self.changeNow() }
          case (.progress, .stopped(let number)) where !undoes:
            let chunk = chunks.withLock { chunks in
              chunks += 1
              return chunks
            }
            if chunk == number, self.made.withLock({ $0 == nil }) { run.stop() }
          default: break
          }
        }
        return summary.failure.map { .failure($0) } ?? .success(summary.state)
      } catch {
        return .failure(error)
      }
    }

    // MARK: What must hold

    func perform() async throws {
      var result = await attempt(open { try await run() }, undoes: false)
      if case .success(.stopped) = result {
        try changeOnce()
        result = await attempt(open { try await run() }, undoes: false)
      }
      try await settle(result, undoes: false) { try await self.run() }
      guard undoes else { return }
      if moment == .undoing { try changeOnce() }
      let undone = await attempt(open { try undo() }, undoes: true)
      try await settle(undone, undoes: true) { try self.undo() }
    }

    /// A run, or one that fails because its container does.
    private func open(
      _ make: () async throws -> BatchRun
    ) async -> Result<BatchRun, BatchError> {
      do { return .success(try await make()) } catch {
        return .failure(error as? BatchError ?? BatchError(.otherRun, "\(error)"))
      }
    }

    private func attempt(
      _ run: Result<BatchRun, BatchError>,
      undoes: Bool
    ) async -> Result<RunState, BatchError> {
      switch run {
      case .success(let run): await attempt(run, undoes: undoes)
      case .failure(let error): .failure(error)
      }
    }

    private func settle(
      _ result: Result<RunState, BatchError>,
      undoes: Bool,
      again: () async throws -> BatchRun
    ) async throws {
      let about = Comment(rawValue: "\(description): \(result)")
      switch result {
      case .success(let state):
        #expect(state == .completed, about)
        try compare(undone: undoes, about)
      case .failure(let error):
        let change = try #require(made.withLock { $0 }, about)
        let keepsCopies = action == .archive || action == .delete && self.undoes
        #expect(!self.change.isUnrelated || self.change.addsColumn && keepsCopies, about)
        // A resumed job also compiles a `where` that it need not apply again.
        let names = [#""t""#, #""v""#, #""d""#, #""old""#, "column", "table: v", "table: d"]
        #expect(names.contains { "\(error)".contains($0) }, about)
        #expect(
          [.otherRun, .noUndo, .unknownEntity, .invalidSQL, .unstableKey].contains(error.code),
          about
        )
        let connection = try Connection(path: path)
        #expect(try DatabaseSnapshot(connection) == change.after, about)
        try connection.execute("BEGIN IMMEDIATE")
        try change.before.restore(in: connection)
        try connection.execute("COMMIT")
        made.withLock { $0 = (change.before, change.before) }
        let second = await attempt(open(again), undoes: undoes)
        guard case .success(.completed) = second else {
          Issue.record("\(description): \(result), then \(second)")
          return
        }
        try compare(undone: undoes, reverted: true, about)
      }
    }

    /// Compares the rows with those of a naive twin.
    private func compare(undone: Bool, reverted: Bool = false, _ about: Comment) throws {
      let twin = try Connection(path: ":memory:")
      try initial.restore(in: twin)
      let filter = condition.map { " WHERE \($0)" } ?? ""
      if !undone {
        switch action {
        case .update: try twin.execute("UPDATE t SET a = a + 100, b = b || '!'\(filter)")
        case .transform, .objects: try twin.execute("UPDATE t SET a = a + 100\(filter)")
        case .delete, .removal: try twin.execute("DELETE FROM t\(filter)")
        case .archive:
          let all = try twin.texts("SELECT name FROM pragma_table_info('t')").joined(
            separator: ", "
          )
          try twin.execute("INSERT INTO old (\(all)) SELECT \(all) FROM t\(filter)")
          try twin.execute("DELETE FROM t\(filter)")
        case .csv, .ndjson: try compareFile(twin, about)
        }
      }
      let connection = try Connection(path: path)
      let isThere = !reverted && made.withLock { $0 != nil && $0?.before != $0?.after }
      let table = isThere ? change.table : "t"
      guard let table else { return }
      let columns = key + ["a", "b", "c"]
      let present = columns.map { isThere ? change.renamed[$0] ?? $0 : $0 }
      let kept = zip(columns, present).filter { $1 != nil }
      func rows(_ names: [String], _ table: String, _ connection: Connection) throws -> [String] {
        let line = names.map { "CAST(`\($0)` AS TEXT)" }.joined(separator: " || '|' || ")
        return try connection.texts("SELECT \(line) AS line FROM `\(table)` ORDER BY line")
      }
      let expected = try rows(kept.map(\.0), "t", twin)
      #expect(try rows(kept.compactMap(\.1), table, connection) == expected, about)
      if reverted {
        #expect(
          try DatabaseSnapshot(connection).rows["t"] == DatabaseSnapshot(twin).rows["t"],
          about
        )
      }
      if action == .archive, !undone, !(isThere && change.description.contains("old")) {
        #expect(
          try DatabaseSnapshot(connection).rows["old"] == DatabaseSnapshot(twin).rows["old"],
          about
        )
      }
    }

    private func compareFile(_ twin: Connection, _ about: Comment) throws {
      let names: [String]
      let from: String
      switch source {
      case "t":
        names = try twin.texts("SELECT name FROM pragma_table_info('t')")
        from = "t" + (condition.map { " WHERE \($0)" } ?? "")
      case "v": (names, from) = (key + ["a", "b"], "v")
      default: (names, from) = (key + ["a", "b"], "t WHERE a > 4")
      }
      let fields = names.map { name in
        action == .csv
          ? name
          : #"'"\#(name)":' || CASE typeof(\#(name)) WHEN 'text' THEN '"' || \#(name) || '"' ELSE \#(name) END"#
      }
      let line = fields.joined(separator: " || ',' || ")
      let expected = try twin.texts("SELECT \(line) AS line FROM \(from) ORDER BY line")
      let text = String(decoding: try directory.read("out"), as: UTF8.self)
      var lines = text.split(whereSeparator: \.isNewline).map(String.init)
      if action == .csv {
        #expect(lines.removeFirst() == names.joined(separator: ","), about)
      } else {
        lines = lines.map { String($0.dropFirst().dropLast()) }
      }
      #expect(lines.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) } == expected, about)
    }
  }

  // MARK: Contexts

  private final class Number: ManagedObject, PersistentModel {
    static let mapping = ModelMapping(
      Number.self,
      entity: "Number",
      table: "numbers",
      properties: [.attribute("id", \.id), .attribute("n", \.n), .attribute("label", \.label)]
    )

    var id: Int { self[\.id] }
    var n: Int {
      get { self[\.n] }
      set { self[\.n] = newValue }
    }
    var label: String? {
      get { self[\.label] }
      set { self[\.label] = newValue }
    }
  }

  @Test(arguments: [
    "ALTER TABLE numbers DROP COLUMN label", "ALTER TABLE numbers RENAME COLUMN label TO title",
    "ALTER TABLE numbers RENAME TO others", "DROP TABLE numbers",
  ])
  func `a context never takes the name of a missing column for a value`(
    change: String
  ) async throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(5, in: directory)
    let container = try await ModelContainer(
      for: Number.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    let numbers = try context.fetch(FetchDescriptor<Number>(sortBy: [.forward(\.id)]))
    try TestDatabase.make(in: directory, change)
    numbers[0].label = "label"
    numbers[0].n = 1
    #expect(throws: BatchError.self) { try context.save() }
    context.insert(Number())
    #expect(throws: BatchError.self) { try context.save() }
    let other = ModelContext(container)
    let all = FetchDescriptor<Number>()
    #expect(throws: BatchError.self) { try other.fetch(all) }
    let labelled = FetchDescriptor<Number>(predicate: #Predicate { $0.label == "label" })
    #expect(throws: BatchError.self) { try other.fetch(labelled) }
    #expect(throws: BatchError.self) { try other.fetchCount(labelled) }
    let sorted = FetchDescriptor<Number>(sortBy: [.forward(\.label)])
    #expect(throws: BatchError.self) { try other.fetchIdentifiers(sorted) }
  }
}
