import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchSQLite
import SystemPackage

/// Asks on a terminal for what the command line omits, writes the job, and shows its plan.
final class JobQuestions {
  /// The known facts about the job, from the command line and then from the answers.
  struct Given {
    var database: String?
    var table: String?
    var condition: String?
    var everything = false
    var key: [String] = []
    var name: String?
    var output: String?
  }

  private static let countLimit = Duration.milliseconds(500)

  private let prompt: Prompt
  private var given: Given { didSet { prompt.endEarly(with: continuation) } }
  private var kind: JobDraft.Kind? { didSet { prompt.endEarly(with: continuation) } }
  private var action: JobDraft.Action? { didSet { prompt.endEarly(with: continuation) } }

  /// How to continue later with the answers so far.
  private var continuation: String? {
    kind.map { "This command continues with your answers:\n  \(given.command($0, action))" }
  }

  init(
    _ prompt: Prompt,
    given: Given,
    kind: JobDraft.Kind?,
    action: JobDraft.Action?
  ) {
    self.prompt = prompt
    self.given = given
    self.kind = kind
    self.action = action
    prompt.endEarly(with: continuation)
  }

  /// Asks, writes the job and shows its plan; if this fails, prints the command with the answers so
  /// far.
  func ask() async throws {
    do {
      try await askAll()
    } catch {
      if let continuation { Terminal.say(continuation) }
      throw error
    }
  }

  private func askAll() async throws {
    let (database, store) = try await askStore()
    given.database = database
    let entity = try await askEntity(of: store)
    given.table = entity.name
    let kind = try askKind(entity)
    self.kind = kind
    given.key = try await askKey(of: entity, in: store)
    given.condition = try await askCondition(store, entity)
    given.everything = given.condition == nil
    var draft = JobDraft(
      database: database,
      table: entity.name,
      key: given.key,
      condition: given.condition,
      action: .delete(archive: nil),
      name: given.name ?? JobDraft.name(kind.rawValue, entity.name)
    )
    if let action {
      draft.action = action
    } else {
      try await askAction(kind, entity, for: &draft)
      action = draft.action
    }
    let isSaved = given.output != nil || isatty(STDOUT_FILENO) == 1
    if isSaved { draft.output = try askOutput(draft) }
    let job = try await draft.write().job
    let report = try await job.plan(handlers: draft.handlers)
    Terminal.say("")
    let text = PlanText(job: job, report: report)
    for line in text.lines(width: Terminal.columns) { Terminal.say(line) }
    for warning in report.warnings { Terminal.warn(warning) }
    if let output = draft.output {
      Terminal.say("\n\(output) is written; run it with: \(usage("run")) \(output.quotedForShell)")
    }
  }

  // MARK: - Questions

  private func askStore() async throws(BatchError) -> (path: String, store: Store) {
    var path = given.database
    while true {
      let asked: String
      if let path { asked = path } else { asked = try prompt.line("Database file") }
      do throws(BatchError) {
        try JobQuestions.Given.requireFile(asked)
        return (asked, try await Store(path: asked, isReadOnly: true))
      } catch {
        // A value from the command line is not asked for again.
        if path != nil { throw error }
        Terminal.complain(error)
        path = nil
      }
    }
  }

  private func askEntity(of store: Store) async throws(BatchError) -> Entity {
    if let table = given.table { return try store.schema.entity(named: table) }
    let entities = store.schema.entities
    guard !entities.isEmpty else {
      throw BatchError(
        .unknownEntity,
        "the database has no table",
        at: store.path,
        remedy: "name another database"
      )
    }
    var rows: [[String]] = []
    for (index, entity) in entities.enumerated() {
      let count = try await count(store, entity, where: nil)
      let kind = entity.kind == .table ? "" : entity.kind.rawValue
      rows.append(["\(index + 1)", entity.name, count, kind])
    }
    for line in TextLayout.table(rows, width: Terminal.columns - 1, indent: 2) {
      Terminal.say(line)
    }
    while true {
      let answer = try prompt.line("Table", standard: entities.count == 1 ? "1" : "")
      if let number = Int(answer), entities.indices.contains(number - 1) {
        return entities[number - 1]
      }
      do throws(BatchError) {
        return try store.schema.entity(named: answer)
      } catch { Terminal.complain(error) }
    }
  }

  private func askKind(_ entity: Entity) throws(BatchError) -> JobDraft.Kind {
    if let kind { return kind }
    let kinds = entity.kind == .view ? [JobDraft.Kind.export] : JobDraft.Kind.allCases
    if kinds.count == 1 { return kinds[0] }
    let rows = kinds.enumerated().map { ["\($0 + 1)", $1.rawValue, $1.words] }
    for line in TextLayout.table(rows, width: Terminal.columns - 1, indent: 2) {
      Terminal.say(line)
    }
    while true {
      let answer = try prompt.line("What to do").lowercased()
      if let number = Int(answer), kinds.indices.contains(number - 1) { return kinds[number - 1] }
      if let kind = JobDraft.Kind(rawValue: answer) { return kind }
      let remedy = remedyForUnknownName(answer, among: kinds.map(\.rawValue), kind: "actions")
      Terminal.say("there is no action \(answer.quotedForMessage); \(remedy)")
    }
  }

  private func askKey(of entity: Entity, in store: Store) async throws(BatchError) -> [String] {
    if !given.key.isEmpty || entity.key != nil { return given.key }
    while true {
      let columns = try askColumns("Columns that identify a row", of: entity)
      do throws(BatchError) {
        try await refuseSharedKeys(columns, of: entity, in: store)
        return columns
      } catch { Terminal.complain("\(error.message); name columns that are different in each row") }
    }
  }

  /// Refuses columns with equal values in two rows, if these are found in time; the job is checked
  /// later too.
  private func refuseSharedKeys(
    _ columns: [String],
    of entity: Entity,
    in store: Store
  ) async throws(BatchError) {
    let (limit, schema) = (Self.countLimit, store.schema)
    let request = FetchRequest(entity: entity.name, predicate: nil, key: columns)
    try await store.connection(label: "batch.new").perform { connection throws(BatchError) in
      let query = try IdentifierQuery(request, schema: schema, connection: connection)
      _ = try connection.within(limit) { () throws(BatchError) in
        try query.refuseDuplicates(in: connection)
      }
    }
  }

  private func askCondition(_ store: Store, _ entity: Entity) async throws(BatchError) -> String? {
    if given.everything { return nil }
    if let condition = given.condition { return condition }
    let all = try await count(store, entity, where: nil)
    showColumns(of: entity)
    while true {
      let answer = try prompt.line("Rows where (SQL, or all)")
      if Self.isAll(answer) {
        Terminal.say("  \(all)")
        return nil
      }
      if answer.isEmpty {
        Terminal.say("  type a condition such as id < 100, or all for every row")
        continue
      }
      do throws(BatchError) {
        Terminal.say("  \(try await count(store, entity, where: answer)), of \(all)")
        return answer
      } catch { Terminal.complain(error) }
    }
  }

  /// Whether an answer means all rows: ALL alone is a keyword, not an expression.
  private static func isAll(_ answer: String) -> Bool { answer.lowercased() == "all" }

  private func showColumns(of entity: Entity) {
    let names = entity.attributes.map(\.name).joined(separator: ", ")
    for line in TextLayout.wrapped(
      names,
      width: Terminal.columns - 1,
      indent: 4,
      first: "  columns: "
    ) { Terminal.say(line) }
  }

  private func askAction(
    _ kind: JobDraft.Kind,
    _ entity: Entity,
    for draft: inout JobDraft
  ) async throws(BatchError) {
    switch kind {
    case .update: try await askAssignments(entity, for: &draft)
    case .delete:
      try await askUntilValid(for: &draft) { () throws(BatchError) in
        let archive = try prompt.line("Copy the rows first to table (empty for no copy)")
        return .delete(archive: archive.isEmpty ? nil : archive)
      }
    case .export:
      let standard = "\(draft.name).csv"
      try await askUntilValid(for: &draft) { () throws(BatchError) in
        let file = try prompt.line("File (.csv or .ndjson)", standard: standard)
        return .export(file: file, format: try askFormat(of: file), columns: [])
      }
    case .transform:
      try await askUntilValid(for: &draft) { () throws(BatchError) in
        let reads = try askColumns("Columns that the program reads", of: entity)
        let writes = try askColumns("Columns that it may set", of: entity)
        let language = try askLanguage()
        return .transform(columns: reads, writes: writes, language: language)
      }
    }
  }

  /// Asks for an action until it fits the database.
  private func askUntilValid(
    for draft: inout JobDraft,
    _ ask: () async throws(BatchError) -> JobDraft.Action
  ) async throws(BatchError) {
    while true {
      draft.action = try await ask()
      do throws(BatchError) {
        _ = try await draft.withoutScript.plan()
        return
      } catch { Terminal.complain(error) }
    }
  }

  private func askFormat(of file: String) throws(BatchError) -> String {
    if let format = NewExportCommand.format(of: file) { return format }
    return try askOne(of: ["csv", "ndjson"], "Format")
  }

  private func askLanguage() throws(BatchError) -> TransformSkeleton.Language {
    let names = TransformSkeleton.Language.allCases.map(\.rawValue)
    return .init(rawValue: try askOne(of: names, "Language")) ?? .python
  }

  private func askOne(of words: [String], _ prompt: String) throws(BatchError) -> String {
    let choice = words.joined(separator: " or ")
    while true {
      let answer = try self.prompt.line("\(prompt) (\(choice))", standard: words[0]).lowercased()
      if words.contains(answer) { return answer }
      Terminal.say("  \(answer.quotedForMessage) is neither of them; type \(choice)")
    }
  }

  /// Asks for assignments until a line is empty; asks again for one that does not compile.
  private func askAssignments(
    _ entity: Entity,
    for draft: inout JobDraft
  ) async throws(BatchError) {
    var assignments: [(column: String, expression: String)] = []
    while true {
      let question = assignments.isEmpty ? "Set (column = expression)" : "Set (empty to continue)"
      let answer = try prompt.line(question)
      if answer.isEmpty, !assignments.isEmpty { return }
      guard let assignment = NewUpdateCommand.assignment(answer) else {
        Terminal.say("  type a column, = and an SQL expression, such as price = price * 2")
        continue
      }
      draft.action = .update(set: assignments + [assignment])
      do throws(BatchError) {
        _ = try await draft.plan()
        assignments.append(assignment)
        action = draft.action
      } catch {
        draft.action = .update(set: assignments)
        Terminal.complain(error)
      }
    }
  }

  private func askColumns(_ prompt: String, of entity: Entity) throws(BatchError) -> [String] {
    let names = entity.attributes.map(\.name).joined(separator: ", ")
    showColumns(of: entity)
    while true {
      let answer = try self.prompt.line("\(prompt), separated by commas")
      let columns = answer.split(separator: ",").map(\.trimmingSpaces)
      if columns.isEmpty {
        Terminal.say("  name at least one of \(names)")
        continue
      }
      do throws(BatchError) {
        for column in columns { _ = try entity.requireAttribute(named: column) }
        return columns
      } catch { Terminal.complain(error) }
    }
  }

  private func askOutput(_ draft: JobDraft) throws(BatchError) -> String {
    var answer = given.output
    while true {
      let output: String
      if let answer {
        output = answer
      } else {
        output = try prompt.line("Write the job to", standard: "\(draft.name).json")
      }
      var draft = draft
      draft.output = output
      do throws(BatchError) {
        if answer == nil { try Self.refuseOtherExtension(of: output) }
        try draft.refuseOccupied()
        given.output = output
        return output
      } catch {
        if answer != nil { throw error }
        Terminal.complain(error)
        answer = nil
      }
    }
  }

  /// Refuses an answer such as "no", which is unlikely to be meant as the name of a job file.
  private static func refuseOtherExtension(of output: String) throws(BatchError) {
    guard FilePath(output).extension == "json" else {
      throw BatchError(
        .fileAccess,
        "\(output.quotedForMessage) is not the name of a job file, which ends in .json",
        remedy: "type a name, or Ctrl-C to write nothing"
      )
    }
  }

  // MARK: - Counts

  private func count(
    _ store: Store,
    _ entity: Entity,
    where condition: String?
  ) async throws(BatchError) -> String {
    let limit = Self.countLimit
    let count = try await store.connection(label: "batch.new").perform {
      connection throws(BatchError) -> Int? in
      try connection.within(limit) { () throws(BatchError) -> Int in
        var text = "SELECT count(*) FROM \(entity.rowSource)"
        if let condition {
          let expression = SQLExpression(condition)
          let compiler = ExpressionCompiler(
            connection: connection,
            entity: entity,
            parameters: [:].keys
          )
          _ = try compiler.condition(expression)
          text += " WHERE \(expression.sql)"
        }
        guard case .integer(let count) = try connection.value(text) else { return 0 }
        return Int(count)
      }
    }
    return count.map { Format.count($0, "row") } ?? "many rows: counting takes over half a second"
  }
}

extension JobDraft.Kind {
  fileprivate var words: String {
    switch self {
    case .update: "change columns with SQL"
    case .delete: "delete rows; can copy them first"
    case .export: "write rows to a file"
    case .transform: "change columns with a program of yours"
    }
  }
}

extension JobQuestions.Given {
  /// Asks for what is missing, and writes the job.
  ///
  /// `needs` are the missing parts of the action, in the words of the command line.
  func write(
    _ action: JobDraft.Action?,
    kind: JobDraft.Kind? = nil,
    missing needs: [String] = []
  ) async throws {
    if let database { try Self.requireFile(database) }
    var missing: [String] = []
    if database == nil { missing.append("the database") }
    if table == nil { missing.append("the table") }
    // An export does not change rows, so it needs no confirmation for all rows.
    if condition == nil, !everything, kind != .export { missing.append("--where or --everything") }
    missing += needs
    if missing.isEmpty, let database, let table, let action, let kind {
      let draft = JobDraft(
        database: database,
        table: table,
        key: key,
        condition: condition,
        action: action,
        name: name ?? JobDraft.name(kind.rawValue, table),
        output: output
      )
      let plan = try await draft.write()
      for trap in plan.traps { Terminal.warn(trap) }
      return
    }
    guard let prompt = Prompt() else {
      let words = missing.joined(separator: ", ")
      throw wrongUsage("give \(words); on a terminal, batch new asks for them")
    }
    try await JobQuestions(prompt, given: self, kind: kind, action: action).ask()
  }

  fileprivate static func requireFile(_ database: String) throws(BatchError) {
    try Job.DatabaseOptions.Server.requireFile(
      database,
      for: "batch new",
      remedy: "copy the job from Documentation/PostgreSQL.md, and check it with batch validate"
    )
  }
}
