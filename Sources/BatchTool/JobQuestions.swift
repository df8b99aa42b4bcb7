import BatchIdentifiers
import BatchPipeline
import BatchStore
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Asks on a terminal for what a job lacks, writes it and shows its plan.
final class JobQuestions {
  /// The actions, by their names in a job.
  enum Kind: String, CaseIterable {
    case update, delete, export, transform

    /// What a question calls it.
    var words: String {
      switch self {
      case .update: "change columns with SQL"
      case .delete: "delete rows, with a copy if you like"
      case .export: "write rows to a file"
      case .transform: "change columns with a program of yours"
      }
    }
  }

  /// What the command line says of the job.
  struct Given {
    var database: String?
    var table: String?
    var condition: String?
    var everything = false
    var key: [String] = []
    var name: String?
    var output: String?
  }

  /// How long a count may take before it is given up.
  private static let countLimit = Duration.milliseconds(500)

  private let editor: LineEditor
  private let given: Given
  private var kind: Kind?
  private var action: JobDraft.Action?

  init(
    _ editor: LineEditor,
    given: Given,
    kind: Kind?,
    action: JobDraft.Action?
  ) {
    self.editor = editor
    self.given = given
    self.kind = kind
    self.action = action
  }

  /// Asks, writes the job and shows its plan.
  func ask() async throws {
    let (database, store) = try await askStore()
    let entity = try await askEntity(of: store)
    let kind = try await askKind(entity)
    var draft = JobDraft(
      database: database,
      table: entity.name,
      key: try await askKey(of: entity),
      condition: try await askCondition(store, entity),
      action: .delete(archive: nil),
      name: given.name ?? JobDraft.name(kind.rawValue, entity.name)
    )
    if let action {
      draft.action = action
    } else {
      try await askAction(kind, entity, for: &draft)
    }
    let isSaved = given.output != nil || isatty(STDOUT_FILENO) == 1
    if isSaved { draft.output = try await askOutput(draft) }
    let plan = try await draft.write()
    let text = try await PlanText(plan, options: .init(), handlers: draft.handlers)
    Terminal.say("")
    for line in text.lines(width: Terminal.columns) { Terminal.say(line) }
    for warning in text.report.warnings { Terminal.warn(warning) }
    if let output = draft.output {
      Terminal.say("\n\(output) is written; batch run \(output) runs it")
    }
  }

  // MARK: - Questions

  private func askStore() async throws(BatchError) -> (path: String, store: Store) {
    var path = given.database
    while true {
      let asked: String
      if let path { asked = path } else { asked = try await editor.line("Database file") }
      do throws(BatchError) {
        try JobQuestions.Given.requireFile(asked)
        return (asked, try await Store(path: asked, isReadOnly: true))
      } catch {
        // What the command line says cannot be asked again.
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
        "there is no table",
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
      let answer = try await editor.line("Table", standard: entities.count == 1 ? "1" : "")
      if let number = Int(answer), entities.indices.contains(number - 1) {
        return entities[number - 1]
      }
      do throws(BatchError) {
        return try store.schema.entity(named: answer)
      } catch { Terminal.complain(error) }
    }
  }

  private func askKind(_ entity: Entity) async throws(BatchError) -> Kind {
    if let kind { return kind }
    let kinds = entity.kind == .view ? [Kind.export] : Kind.allCases
    if kinds.count == 1 { return kinds[0] }
    let rows = kinds.enumerated().map { ["\($0 + 1)", $1.rawValue, $1.words] }
    for line in TextLayout.table(rows, width: Terminal.columns - 1, indent: 2) {
      Terminal.say(line)
    }
    while true {
      let answer = try await editor.line("What to do").lowercased()
      if let number = Int(answer), kinds.indices.contains(number - 1) { return kinds[number - 1] }
      if let kind = Kind(rawValue: answer) { return kind }
      let remedy = remedyForUnknownName(answer, among: kinds.map(\.rawValue), kind: "actions")
      Terminal.say("there is no action \(answer.quotedForMessage); \(remedy)")
    }
  }

  private func askKey(of entity: Entity) async throws(BatchError) -> [String] {
    if !given.key.isEmpty || entity.key != nil { return given.key }
    return try await askColumns("Columns that identify a row", of: entity)
  }

  private func askCondition(_ store: Store, _ entity: Entity) async throws(BatchError) -> String? {
    if given.everything { return nil }
    if let condition = given.condition { return condition }
    let all = try await count(store, entity, where: nil)
    while true {
      var problem: BatchError?
      let answer = try await editor.line("Rows where (SQL; empty for all)") { text in
        if text.isEmpty { return all }
        do throws(BatchError) {
          return "\(try await self.count(store, entity, where: text)), of \(all)"
        } catch { return error.message }
      }
      if answer.isEmpty { return nil }
      do throws(BatchError) {
        _ = try await count(store, entity, where: answer)
      } catch { problem = error }
      guard let problem else { return answer }
      Terminal.complain(problem)
    }
  }

  private func askAction(
    _ kind: Kind,
    _ entity: Entity,
    for draft: inout JobDraft
  ) async throws(BatchError) {
    switch kind {
    case .update: try await askAssignments(entity, for: &draft)
    case .delete:
      let archive = try await editor.line("Copy them to the table (empty for none)")
      draft.action = .delete(archive: archive.isEmpty ? nil : archive)
    case .export:
      let standard = "\(draft.name).csv"
      let file = try await editor.line("File (.csv or .ndjson)", standard: standard)
      draft.action = .export(
        file: file,
        format: NewExportCommand.format(of: file),
        columns: []
      )
    case .transform:
      let reads = try await askColumns("Columns that the program reads", of: entity)
      let writes = try await askColumns("Columns that it may set", of: entity)
      var language: TransformSkeleton.Language?
      while language == nil {
        let answer = try await editor.line("Language (python or swift)", standard: "python")
        language = .init(rawValue: answer.lowercased())
      }
      draft.action = .transform(columns: reads, writes: writes, language: language ?? .python)
    }
  }

  /// Asks for assignments until a line is empty; one that does not compile is asked for again.
  private func askAssignments(
    _ entity: Entity,
    for draft: inout JobDraft
  ) async throws(BatchError) {
    Terminal.say("  the columns: \(entity.attributes.map(\.name).joined(separator: ", "))")
    var assignments: [(column: String, expression: String)] = []
    while true {
      let prompt = assignments.isEmpty ? "Set (column = expression)" : "Set (empty if that is all)"
      let answer = try await editor.line(prompt)
      if answer.isEmpty, !assignments.isEmpty { return }
      guard let assignment = NewUpdateCommand.assignment(answer) else {
        Terminal.say("  such as: price = price * 2")
        continue
      }
      draft.action = .update(set: assignments + [assignment])
      do throws(BatchError) {
        _ = try await draft.plan()
        assignments.append(assignment)
      } catch {
        draft.action = .update(set: assignments)
        Terminal.complain(error)
      }
    }
  }

  private func askColumns(_ prompt: String, of entity: Entity) async throws(BatchError) -> [String]
  {
    let names = entity.attributes.map(\.name).joined(separator: ", ")
    while true {
      let answer = try await editor.line("\(prompt), with commas between") { _ in names }
      let columns = answer.split(separator: ",").map(\.trimmingSpaces)
      guard !columns.isEmpty else { continue }
      do throws(BatchError) {
        for column in columns { _ = try entity.requireAttribute(named: column) }
        return columns
      } catch { Terminal.complain(error) }
    }
  }

  private func askOutput(_ draft: JobDraft) async throws(BatchError) -> String {
    var answer = given.output
    while true {
      let output: String
      if let answer {
        output = answer
      } else {
        output = try await editor.line("Write the job to", standard: "\(draft.name).json")
      }
      var draft = draft
      draft.output = output
      do throws(BatchError) {
        try draft.refuseOccupied()
        return output
      } catch {
        if answer != nil { throw error }
        Terminal.complain(error)
        answer = nil
      }
    }
  }

  // MARK: - Counts

  /// How many rows there are, in words.
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
    return count.map { Format.count($0, "row") } ?? "many rows, not counted within half a second"
  }
}

extension JobQuestions.Given {
  /// Asks for what is missing, and writes the job.
  ///
  /// - Parameters:
  ///   - action: What is done with the rows; nil to ask.
  ///   - kind: What kind of action it is, if that is known.
  ///   - needs: What the action lacks, in the words of the command line.
  /// - Throws: What is wrong with the command line or the job.
  func write(
    _ action: JobDraft.Action?,
    kind: JobQuestions.Kind? = nil,
    missing needs: [String] = []
  ) async throws {
    if let database { try Self.requireFile(database) }
    var missing: [String] = []
    if database == nil { missing.append("the database") }
    if table == nil { missing.append("the table") }
    if condition == nil, !everything { missing.append("--where or --everything") }
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
    guard let editor = LineEditor() else {
      let words = missing.joined(separator: ", ")
      throw wrongUsage("give \(words); on a terminal, batch new asks for them")
    }
    try await JobQuestions(editor, given: self, kind: kind, action: action).ask()
  }

  fileprivate static func requireFile(_ database: String) throws(BatchError) {
    try Job.DatabaseOptions.Server.requireFile(
      database,
      for: "batch new",
      remedy: "copy the job from Documentation/PostgreSQL.md, and check it with batch validate"
    )
  }
}
