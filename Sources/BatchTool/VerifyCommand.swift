import ArgumentParser
import BatchIdentifiers
import BatchJobs
import BatchPipeline
import SystemPackage

struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Checks that runs did what their jobs declare.",
    usage: usage("verify <job> ... [<options>]"),
    discussion: """
      It compares every row of every table with a copy of the database from before the run, such as a \
      backup. The columns that an update sets must have the values that its expressions give over the copy; \
      deleted rows must be gone; all else must be as in the copy. If anything differs, the exit status is 1. \
      What cannot be computed again, and what triggers may write, is named and counted.

      Without a copy it checks, by the run's undo records ("undo" in the job), whether the recorded columns \
      are as the run left them. It ignores all other rows and columns.
      """
  )

  @Argument(
    help: ArgumentHelp("The job files, in the order in which they ran.", valueName: "job"),
    completion: .file(extensions: ["json"])
  )
  var jobs: [String]

  @Option(
    help: ArgumentHelp(
      "A copy of the database, or a table with the rows, from before; default: undo records.",
      valueName: "file|table"
    )
  )
  var against: String?

  @Option(
    name: .customLong("run"),
    help: ArgumentHelp(
      "A run of batch history; may be repeated, in their order; default: the last of each job.",
      valueName: "run"
    )
  )
  var runs: [String] = []

  @Option(
    name: .customLong("param"),
    help: ArgumentHelp(
      "A parameter that is not recorded, as it is secret.",
      valueName: "name=value"
    )
  )
  var parameters: [String] = []

  @Option(
    help: ArgumentHelp(
      "A table or column that may also differ; may be repeated.",
      valueName: "table[.column]"
    )
  )
  var allow: [String] = []

  @Option(help: "How many differences to show; all are counted.")
  var limit = 20

  @Flag(help: "Print the result as JSON.")
  var json = false

  func validate() throws {
    if against == nil {
      if !allow.isEmpty { throw ValidationError("--allow needs --against.") }
      if jobs.count > 1 || runs.count > 1 {
        throw ValidationError("Several runs are verified together with --against.")
      }
    }
    if !(0...Verification.maximumLimit).contains(limit) {
      throw ValidationError("--limit must be from 0 to \(Verification.maximumLimit).")
    }
  }

  func run() async throws {
    guard let against else { return try await verifyByRecord() }
    let progress = RowProgress()
    let verification: Verification
    do {
      defer { progress.end() }
      var choices = Verification.Choices()
      choices.runs = runs
      choices.parameters = parameters
      choices.allowed = allow
      choices.limit = limit
      verification = try await Verification(
        of: jobs.map { name throws(BatchError) in try requireJob(named: name) },
        against: FilePath(against),
        choices
      ) { progress.show($0) }
    }
    if json {
      try Terminal.printJSON(verification, pretty: true)
    } else {
      try print(verification)
    }
    if !verification.isAsDeclared { ExitStatus.failed.end() }
  }

  /// Compares the rows that the run recorded with what the run left in them.
  private func verifyByRecord() async throws {
    let report: UndoReport
    do throws(BatchError) {
      report = try await UndoReport(
        undoingWork: runRecords(named: jobs[0]).cause,
        run: runs.first,
        showing: limit
      )
    } catch {
      let isLoad = ((try? runRecords(named: jobs[0]))?.cause as? Job)?.action.kind == .load
      guard error.code == .noUndo, !isLoad else { throw error }
      var error = error
      error.remedy = "give a copy of the database from before the run with --against"
      throw error
    }
    if json {
      try Terminal.printJSON(RecordLine(report: report), pretty: true)
    } else {
      for message in report.changedSince { try Terminal.print(message) }
      if !report.changedSince.isEmpty { try Terminal.print("") }
      let outcomes = report.outcomes
      let found = report.isAsLeft ? "every row is" : "not every row is"
      try Terminal.print("run \(report.run.run): \(found) as it left it")
      let columns = report.comparedColumns.joined(separator: ", ")
      if !columns.isEmpty { try Terminal.print("  compared with what it set: \(columns)") }
      for (name, count) in [
        ("as the run left them", outcomes.succeeded), ("changed since", outcomes.failed),
        ("as before the run", outcomes.unchanged), ("gone", outcomes.vanished),
      ] where count > 0 { try Terminal.print("  \(name): \(rows(count))") }
    }
    if let undo = report.run.undo {
      Terminal.warn("run \(report.run.run) was undone by run \(undo.run)")
    }
    if !report.isAsLeft { ExitStatus.failed.end() }
  }

  private func print(_ verification: Verification) throws(BatchError) {
    for difference in verification.differences {
      try Terminal.print(Self.text(of: difference).onOneLine)
    }
    let more = verification.differenceCount - verification.differences.count
    if more > 0 { try Terminal.print("and \(more.grouped) more") }
    if !verification.byTable.isEmpty { try Terminal.print("") }
    for table in verification.byTable { try Terminal.print(text(of: table).onOneLine) }
    if !verification.isAsDeclared { try Terminal.print("") }
    let names = verification.runs.map(\.job)
    let jobs = names.enumerated().filter { names.firstIndex(of: $1) == $0 }.map(\.element)
    let declared =
      verification.unchecked.isEmpty
      ? "what the job declares" : "what the job declares and what is not checked"
    let found =
      verification.isAsDeclared
      ? "nothing differs but \(declared)"
      : "\(Format.count(verification.differenceCount, "difference")) that the job does not declare"
    try Terminal.print("\(jobs.joined(separator: ", ")): \(found)")
    for run in verification.runs {
      try Terminal.print("  run: \(run.run) of \(run.job), \(rows(run.done)) done")
    }
    let computed = verification.computedColumns.joined(separator: ", ")
    let set = rows(verification.changedAsDeclared)
    let counts = [
      ("compared", "\(rows(verification.rows)) in \(Format.count(verification.tables, "table"))"),
      ("selected", rows(verification.selected)),
      (
        computed.isEmpty ? "set" : "set as computed",
        computed.isEmpty ? set : "\(set) in \(computed)"
      ),
      ("deleted as declared", rows(verification.deletedAsDeclared)),
      ("archived", rows(verification.archivedAsDeclared)),
      ("changed", rows(verification.changed)),
      ("added", rows(verification.added)),
      ("removed", rows(verification.removed)),
      ("not as recorded", rows(verification.outcome)),
      ("schema", Format.count(verification.schema, "object")),
    ]
    for (index, (name, value)) in counts.enumerated() where index < 2 || !value.hasPrefix("0 ") {
      try Terminal.print("  \(name): \(value)")
    }
    for part in verification.unchecked {
      let place = part.table + (part.column.map { ".\($0)" } ?? "")
      try Terminal.print("  not checked: \(rows(part.rows)) in \(place): \(part.because)".onOneLine)
    }
    for note in verification.notes { Terminal.warn(note) }
  }

  /// Formats `orders: 3 rows differ: price_cents 3, note 1; 2 rows more, 1 row less`.
  private func text(of table: TableDifferences) -> String {
    var parts: [String] = []
    if table.changed > 0 {
      var columns = table.columns.prefix(Self.columnLimit).map {
        "\($0.name) \($0.rows.grouped)"
      }
      let others = table.columns.count - columns.count
      if others > 0 { columns.append("and \(Format.count(others, "other column"))") }
      let differ = "\(rows(table.changed)) \(table.changed == 1 ? "differs" : "differ")"
      parts.append("\(differ): \(columns.joined(separator: ", "))")
    }
    let others = [
      (table.added, "more"), (table.removed, "less"), (table.outcome, "not as recorded"),
    ].filter { $0.0 > 0 }.map { "\(rows($0)) \($1)" }
    if !others.isEmpty { parts.append(others.joined(separator: ", ")) }
    return "\(table.table): \(parts.joined(separator: "; "))"
  }

  /// The maximum number of columns in the line of a table; JSON has all.
  private static let columnLimit = 20

  private func rows(_ count: Int) -> String { Format.count(count, "row") }

  private static func text(of difference: StoreDifference) -> String {
    if difference.key.isEmpty, let detail = difference.detail { return detail }
    let key = difference.key.map { "\($0.name) = \($0.value)" }.joined(separator: ", ")
    let row = "\(difference.table) \(key)"
    if let detail = difference.detail { return "\(row): \(detail)" }
    switch difference.kind {
    case .added: return "\(row): in the database only"
    case .removed: return "\(row): in the other file only"
    case .changed, .outcome, .schema:
      let columns = difference.columns.map { "\($0.name): \($0.file) → \($0.database)" }
      return "\(row): \(columns.joined(separator: ", "))"
    }
  }
}

/// The JSON of comparing the rows that a run recorded.
private struct RecordLine: Encodable {
  let report: UndoReport

  private enum CodingKeys: CodingKey { case isAsDeclared }

  func encode(to encoder: any Encoder) throws {
    try report.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(report.isAsLeft, forKey: .isAsDeclared)
  }
}

/// A live line with the number of rows compared so far.
private final class RowProgress: Sendable {
  private let last = Lock<ContinuousClock.Instant?>(nil)

  func show(_ rows: Int) {
    guard Terminal.isInteractive else { return }
    let now = ContinuousClock.now
    let isDue = last.withLock { last in
      if let last, now - last < .milliseconds(200) { return false }
      last = now
      return true
    }
    if isDue { Terminal.say("\r\u{1b}[K\(Format.count(rows, "row")) compared", terminator: "") }
  }

  func end() {
    if last.withLock({ $0 != nil }) { Terminal.say("\r\u{1b}[K", terminator: "") }
  }
}
