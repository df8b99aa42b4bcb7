import BatchRuns
public import BatchIdentifiers
import SystemPackage

extension Job {
  /// Checks every rule that does not need the database.
  ///
  /// ``init(contentsOf:)`` calls it; for a job created in code, call it yourself.
  ///
  /// - Throws: A `BatchError` with code `invalidJob` and a line for each problem.
  public func validate() throws(BatchError) {
    let problems = problems().map { problem in origin.map(problem.located) ?? problem }
    if let error = BatchError.invalidJob(problems, file: origin?.file) { throw error }
  }

  func problems() -> [JobProblem] {
    identityProblems() + databaseProblems() + serverProblems() + parameterProblems()
      + sourceProblems() + selectionProblems() + sinceProblems() + actionProblems()
      + partitionProblems() + tuningProblems()
      + collidingFileProblems(reading: source.identifiers, writing: output)
  }
}

// MARK: - Rules by section

extension Job {
  private func identityProblems() -> [JobProblem] {
    var problems: [JobProblem] = []
    if version != Self.currentVersion {
      problems.append(Self.problem(withVersion: Int64(version)))
    }
    return problems + Self.problems(ofName: name)
  }

  static func problems(ofName name: String) -> [JobProblem] {
    if name.isEmpty { return [.init("name", "is empty", remedy: "name the job")] }
    if name.utf8.count <= 100, name.utf8.allSatisfy(\.isNameByte) { return [] }
    return [
      .init(
        "name",
        "\(name.quotedForMessage) is not a name",
        remedy: "use at most 100 of A-Z a-z 0-9 . _ -"
      )
    ]
  }

  static func problem(withVersion version: Int64) -> JobProblem {
    version > Int64(currentVersion)
      ? .init(
        "version",
        "version \(version) was written for a newer batch",
        remedy: "install a newer batch, or write the job for version \(currentVersion)"
      )
      : .init("version", "there is no version \(version)", remedy: "write \(currentVersion)")
  }

  private func databaseProblems() -> [JobProblem] {
    var problems: [JobProblem] = []
    if database.path.isEmpty, database.server == nil { problems.append(.empty(.database)) }
    problems += RunPolicy.problems(
      of: database.busyTimeout,
      "database",
      "busyTimeout",
      zeroAllowed: true
    ).map { JobProblem($0) }
    for (index, name) in database.extensions.enumerated() where name.isEmpty {
      problems.append(.empty(.databaseExtension(index)))
    }
    if database.readOnly, action.writes {
      problems.append(
        .init(
          JobPath("database", "readOnly"),
          "the action \(action.type) writes to the database",
          remedy: "remove readOnly"
        )
      )
    }
    return problems
  }

  private func parameterProblems() -> [JobProblem] {
    parameters.sorted { $0.key < $1.key }.flatMap { name, declaration in
      let path = JobPath.parameter(name)
      var problems: [JobProblem] = []
      if !name.isParameterName {
        problems.append(
          .init(
            path,
            "\(name.quotedForMessage) is not a parameter name",
            remedy: "begin with a letter and use A-Z a-z 0-9 _"
          )
        )
      }
      if let problem = declaration.defaultProblem(at: path.appending("default")) {
        problems.append(problem)
      }
      return problems
    }
  }

  private func sourceProblems() -> [JobProblem] {
    var problems: [JobProblem] = []
    if let query = source.query, query.isBlank {
      problems.append(.init(.query, "is empty", remedy: "write a SELECT, or name an entity"))
    }
    // Identifiers from a closure have their own entity.
    if source.entity.isEmpty { problems.append(.empty(action.selectsRows ? .entity : .into)) }
    if let condition = source.where, condition.isBlank {
      problems.append(
        .init(.where, "is empty", remedy: "write a condition, or remove the key")
      )
    }
    if let identifiers = source.identifiers, identifiers.isEmpty {
      problems.append(.empty(.identifiers))
    }
    if let limit = source.limit, limit < 1 {
      problems.append(
        .init(JobPath("source", "limit"), "is \(limit)", remedy: "select at least 1 row")
      )
    }
    problems += Self.columnProblems(source.orderBy.map(\.column), "source", "orderBy")
    if let key = source.key { problems += Self.columnProblems(key, "source", "key", least: 1) }
    return problems
  }

  /// Checks the keys of `source` that exclude or require one another.
  private func selectionProblems() -> [JobProblem] {
    guard action.selectsRows else { return [] }
    var problems: [JobProblem] = []
    let everything = JobPath("source", "everything")
    if source.query != nil {
      if action.writes {
        problems.append(
          .init(
            .query,
            "\(action.type) needs rows of a table, and those of a query can only be exported",
            remedy: "name the table as source.entity, and say in \"where\" which rows:"
              + " \"id IN (SELECT …)\""
          )
        )
      }
      if source.key == nil {
        problems.append(
          .init(
            .query,
            "needs a key: its rows are selected first, and looked up again when their turn comes",
            remedy: "name the columns that identify a row, such as \"key\": [\"id\"]"
          )
        )
      }
    }
    if source.everything, source.where != nil {
      problems.append(
        .init(everything, "contradicts source.where", remedy: "remove one of the two")
      )
    }
    if source.identifiers != nil {
      let others: [(path: JobPath, isGiven: Bool)] = [
        (.where, source.where != nil),
        (JobPath("source", "orderBy"), !source.orderBy.isEmpty),
        (JobPath("source", "limit"), source.limit != nil),
        (everything, source.everything),
      ]
      for other in others where other.isGiven {
        problems.append(
          .init(
            other.path,
            "contradicts source.identifiers, which names the rows and their order",
            remedy: "remove one of the two"
          )
        )
      }
    }
    if action.writes, source.query == nil, source.where == nil, source.identifiers == nil,
      !source.everything
    {
      problems.append(
        .init(
          JobPath("source"),
          "\(action.type) without \"where\" would concern every row",
          remedy: "add \"where\", or \"everything\": true if that is meant"
        )
      )
    }
    return problems
  }

  private func actionProblems() -> [JobProblem] {
    switch action {
    case .update(let update):
      var problems = update.set.filter(\.expression.isBlank).map {
        JobProblem(.set($0.column), "the expression is empty", remedy: "write NULL to clear it")
      }
      problems += Self.columnProblems(
        update.set.map(\.column),
        "action",
        "set",
        least: 1,
        path: { .set(update.set[$0].column) }
      )
      return problems
    case .delete(let delete):
      guard let archive = delete.archive else { return [] }
      if archive.isEmpty { return [.empty(.archive)] }
      guard archive.foldedForSQLite == source.entity.foldedForSQLite else { return [] }
      return [
        .init(.archive, "is the entity that rows are deleted from", remedy: "name another entity")
      ]
    case .export(let export):
      var problems: [JobProblem] = []
      if export.file.isEmpty {
        problems.append(.empty(export.path))
      }
      if let size = export.maximumFile, size < Self.leastMaximumFile {
        problems.append(
          .init(
            JobPath("action", "maximumFile"),
            "is \(ByteSize(bytes: size))",
            remedy: "choose at least \(ByteSize(bytes: Self.leastMaximumFile))"
          )
        )
      }
      if let columns = export.columns {
        problems += Self.columnProblems(columns, "action", "columns", least: 1)
      }
      switch export.format {
      case .lines(.csv(let form), _): problems += Self.problems(of: form)
      case .lines(.ndjson(let json), _): problems += Self.columnProblems(json, "action", "json")
      case .parquet: break
      }
      return problems
    case .transform(let transform): return Self.problems(of: transform)
    case .load(let load): return problems(of: load)
    }
  }

  /// Smaller files would be more than a folder holds well.
  private static let leastMaximumFile: Int64 = 100_000

  private func problems(of load: Load) -> [JobProblem] {
    var problems: [JobProblem] = []
    if load.files.isEmpty { problems.append(.empty(.files)) }
    if let columns = load.columns {
      problems += columns.filter(\.expression.isBlank).map {
        JobProblem(
          .columns($0.column),
          "the expression is empty",
          remedy: "write NULL for no value"
        )
      }
      problems += Self.columnProblems(
        columns.map(\.column),
        "action",
        "columns",
        least: 1,
        path: { .columns(columns[$0].column) }
      )
    }
    if let names = load.names {
      problems += Self.columnProblems(names, "action", "names", least: 1)
    }
    if case .update(let key?) = load.onConflict {
      problems += Self.columnProblems(key, "action", "onConflict", least: 1)
    }
    return problems + Self.problems(ofDelimiter: load.delimiter)
  }

  private static func problems(ofDelimiter delimiter: Character) -> [JobProblem] {
    guard delimiter.utf8.count != 1 || "\"\r\n".contains(delimiter) else { return [] }
    return [
      .init(
        JobPath("action", "delimiter"),
        "\(String(delimiter).quotedForMessage) cannot stand between fields",
        remedy: "use one ASCII character, such as \";\" or \"\\t\""
      )
    ]
  }

  private static func problems(of form: CSVForm) -> [JobProblem] {
    let problems = problems(ofDelimiter: form.delimiter)
    let special = Set("\"\r\n".utf8).union(form.delimiter.utf8)
    guard problems.isEmpty, form.null.utf8.contains(where: special.contains) else {
      return problems
    }
    return [
      .init(
        JobPath("action", "null"),
        "\(form.null.quotedForMessage) would need quotes, and NULL has none",
        remedy: "use a text without quotes, line ends and the delimiter, such as \"NULL\""
      )
    ]
  }

  private static func problems(of transform: Transform) -> [JobProblem] {
    var problems = columnProblems(transform.columns, "action", "columns", least: 1)
    problems += columnProblems(transform.writes, "action", "writes", least: 1)
    problems += RunPolicy.problems(of: transform.timeout, "action", "timeout").map {
      JobProblem($0)
    }
    switch transform.program {
    case .handler(let name):
      if name.isEmpty { problems.append(.empty(.handler)) }
    case .command(let arguments):
      problems += Self.problems(ofCommand: arguments, .command)
    }
    return problems
  }

  static func problems(ofCommand arguments: [String], _ path: JobPath) -> [JobProblem] {
    if arguments.first?.isEmpty ?? true { return [.empty(path)] }
    return arguments.indices.filter { arguments[$0].utf8.contains(0) }.map {
      .init(path.appending($0), "an argument cannot have the character U+0000")
    }
  }
}

// MARK: - Rules of all work

extension RunCause {
  private func approvalProblems() -> [JobProblem] {
    guard let approval else { return [] }
    var problems: [JobProblem] = []
    if !(1...Job.Approval.limit).contains(approval.by) {
      problems.append(
        .init(
          JobPath("approval", "by"),
          "by is not from 1 to \(Job.Approval.limit)",
          remedy: "1 is usual"
        )
      )
    }
    return problems
  }

  private func canaryProblems() -> [JobProblem] {
    guard let canary = policy.canary else { return [] }
    if !writes {
      let reason = "an export changes no row that could be looked at first"
      return [.init("canary", reason, remedy: "remove canary")]
    }
    if !keepsRecord {
      let reason = "what follows a canary is recorded in the checkpoint, and there is none"
      return [.init("canary", reason, remedy: "name checkpoint.path, or remove canary")]
    }
    if canary.wait == .verification, undo == nil {
      let reason = "verify compares the rows with the undo records, and the job keeps none"
      return [.init(JobPath("canary", "then"), reason, remedy: "add \"undo\": true")]
    }
    return []
  }

  private func afterwardsProblems() -> [JobProblem] {
    guard afterwards != nil, !writes else { return [] }
    return [
      .init("afterwards", "an export leaves no space to give back", remedy: "remove afterwards")
    ]
  }

  private func undoProblems() -> [JobProblem] {
    guard let undo else { return [] }
    var problems: [JobProblem] = []
    if !writes {
      problems.append(
        .init("undo", "an export changes nothing that could be undone", remedy: "remove undo")
      )
    } else if !keepsRecord, !isRehearsal {
      problems.append(
        .init(
          "undo",
          "undo records need a checkpoint, and there is none",
          remedy: "name checkpoint.path, or remove undo"
        )
      )
    }
    if let keep = undo.keep {
      let longest = RunPolicy.longDurationLimit
      problems += RunPolicy.problems(of: keep, "undo", "keep", longest: longest)
        .map { JobProblem($0) }
    }
    return problems
  }

  private func outsideProblems() -> [JobProblem] {
    var problems = Job.Hooks.Event.allCases.flatMap { event in
      hooks.commands[event].map {
        Job.problems(ofCommand: $0, JobPath("hooks", event.rawValue))
      } ?? []
    }
    if let report, report.format == nil {
      problems.append(
        .init(
          .report,
          report.path.isEmpty ? "is empty" : "\(report.path.string.quotedForMessage) has no form",
          remedy: "end it in .html or .json"
        )
      )
    }
    return problems
  }

  /// The problems of settings that apply to all kinds of work.
  func tuningProblems() -> [JobProblem] {
    var problems = policy.problems().map { JobProblem($0) }
    if policy.skip.limit > 0, !keepsRecord, !isRehearsal {
      problems.append(
        .init(
          "skip",
          "failed identifiers are recorded beside the checkpoint, and there is none",
          remedy: "name checkpoint.path, or remove skip"
        )
      )
    }
    if policy.checkpoint.list == .store, !writes {
      problems.append(
        .init(
          JobPath("checkpoint", "list"),
          "the database keeps the lists of jobs that change its rows",
          remedy: "remove it"
        )
      )
    }
    return problems + canaryProblems() + approvalProblems() + afterwardsProblems() + undoProblems()
      + outsideProblems()
  }
}

// MARK: - Rules by kind of value

extension Job {
  private static func columnProblems(
    _ columns: [String],
    _ section: String,
    _ key: String,
    least: Int = 0,
    path: ((Int) -> JobPath)? = nil
  ) -> [JobProblem] {
    let list = JobPath(section, key)
    if columns.count < least {
      return [.init(list, "is empty", remedy: "name at least one column")]
    }
    var seen: Set<[UInt8]> = []
    return columns.enumerated().compactMap { index, column in
      let path = path?(index) ?? list.appending(index)
      if column.isEmpty { return .init(path, "the column has no name") }
      if seen.insert(column.foldedForSQLite).inserted { return nil }
      return .init(path, "the column \(column.quotedForMessage) is named twice")
    }
  }
}

extension JobProblem {
  fileprivate init(_ problem: SettingProblem) {
    self.init(
      JobPath(problem.path.map { .key($0) }),
      problem.message,
      remedy: problem.remedy
    )
  }

  fileprivate init(_ key: String, _ message: String, remedy: String) {
    self.init(JobPath(key), message, remedy: remedy)
  }

  static func empty(_ path: JobPath) -> JobProblem {
    .init(path, "is empty", remedy: "give it a value")
  }
}

extension UInt8 {
  fileprivate var isNameByte: Bool {
    switch Unicode.Scalar(self) {
    case "A"..."Z", "a"..."z", "0"..."9", ".", "_", "-": true
    default: false
    }
  }
}

extension String {
  fileprivate var isBlank: Bool { allSatisfy(\.isWhitespace) }

  /// The bytes that SQLite compares in names: it ignores case only for ASCII letters.
  package var foldedForSQLite: [UInt8] {
    utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
  }

  fileprivate var isParameterName: Bool {
    guard let first = unicodeScalars.first, first.isASCII, first.properties.isAlphabetic else {
      return false
    }
    return unicodeScalars.allSatisfy {
      $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || $0 == "_")
    }
  }
}
