import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchStore

struct PlanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Shows what a job would do; writes nothing.",
    discussion: """
      Counts the matching rows and shows the SQL, SQLite's query plan, warnings, a rough time and \
      the first rows before and after. The handler or command of a transform is not called, since it \
      may do more than compute: its rows are shown before only, and its time is unknown.
      """
  )

  @OptionGroup var arguments: JobArguments

  @Option(help: "Identifiers in a chunk, instead of the job's number.")
  var chunkSize: Int?

  @OptionGroup var runID: RunIDArgument

  @Flag(help: "Print the plan as JSON.")
  var json = false

  func validate() throws {
    if let chunkSize, !(1...RunPolicy.chunkSizeLimit).contains(chunkSize) {
      throw ValidationError("--chunk-size must be from 1 to \(RunPolicy.chunkSizeLimit).")
    }
  }

  func run() async throws {
    let job = try await arguments.load()
    #if PostgreSQL
    if job.database.server != nil { return try await showPlan(of: job) }
    #endif
    let plan = try await arguments.plan(of: job)
    let report = try await plan.report(chunkSize: chunkSize)
    var options = BatchRun.Options()
    options.runID = runID.value
    options.parameterTexts = arguments.parameters
    let next = await NextStep(
      of: plan.job,
      options: options,
      handlers: BatchTool.handlers
    )
    if json { return try Terminal.printJSON(PlanLine(report: report, next: next), pretty: true) }

    try Terminal.print("job       \(plan.job.name) (\(plan.job.action.type))")
    try Terminal.print("database  \(plan.store.path)")
    let key = plan.entity.key?.columns.joined(separator: ", ") ?? ""
    try Terminal.print("entity    \(plan.entity.name), identified by \(key)")
    try Terminal.print(
      "matches   \(Format.count(report.matches)) in \(Format.count(report.chunks, "chunk"))"
    )
    if let file = report.identifiers {
      try Terminal.print("rows      those that \(file) names, in its order")
    } else {
      try Terminal.print("fetch     \(oneLine(report.sql.fetch))")
      for line in report.queryPlan { try Terminal.print("          \(line)") }
    }
    if let create = report.sql.create {
      try Terminal.print("create    \(oneLine(create))")
    }
    try Terminal.print("apply     \(oneLine(report.sql.apply))")
    if let lookUp = report.lookUp {
      for line in lookUp.queryPlan { try Terminal.print("          \(line)") }
      if lookUp.isCopied {
        let size = lookUp.copyBytes.map { ", about \(Format.bytes($0))" } ?? ""
        try Terminal.print(
          "copy      the rows are read once, into a temporary file\(size): to find"
        )
        try Terminal.print("          one by its key SQLite looks at many")
      }
    }
    try Terminal.print("recheck   \(text(of: report.recheck))")
    if let unchanged = report.unchanged {
      try Terminal.print(
        "unchanged \(Format.count(unchanged.count)) of the first \(Format.count(unchanged.of, "row"))"
      )
    }
    if let seconds = report.estimatedSeconds {
      let about = report.recheck.isInterrupted ? "more than" : "about"
      let reason = report.pace.map { "by \($0)" } ?? "a rough guess"
      try Terminal.print("time      \(about) \(Format.seconds(seconds)), \(reason)")
    } else if let program = plan.program {
      try Terminal.print("time      unknown: it depends on the \(program)")
    }
    if !report.sample.isEmpty {
      let unknown = plan.program.map {
        ", before; what comes after only the \($0) knows, and a plan does not call it"
      }
      try Terminal.print("\nthe first \(report.sample.count)\(unknown ?? ""):")
    }
    for row in report.sample { try printSample(row, of: plan.entity) }
    try Terminal.print("\nbatch run \(next.words)")
    for warning in report.warnings { Terminal.warn(warning) }
  }

  /// What must still hold of a row, and what need not and why.
  private func text(of recheck: PlanReport.Rechecking) -> String {
    let terms = recheck.terms.map { "`\($0)`" }.joined(separator: " and ")
    let omitted = recheck.notRechecked.map { "`\($0.term)`, which \($0.because)" }
    let row = terms.isEmpty ? "the row" : "the row, and \(terms)"
    if recheck.mode == "off" { return "the row only: recheck is off" }
    return omitted.isEmpty ? row : "\(row); not rechecked: \(omitted.joined(separator: "; "))"
  }

  private func oneLine(_ sql: String) -> String {
    sql.split(whereSeparator: \.isNewline).joined(separator: " ").replacing(" )", with: ")")
  }

  /// Shows a row, a column a line in the table's order; those that change are marked.
  private func printSample(_ row: PlanReport.Sample, of entity: Entity) throws(BatchError) {
    let names = entity.attributes.map(\.column).filter { row.before[$0] != nil }
    let width = names.map(\.count).max() ?? 0
    try Terminal.print("  \(row.identifier)")
    for name in names {
      let before = row.before[name] ?? .null
      let after = row.after?[name] ?? before
      let label = name + String(repeating: " ", count: width - name.count)
      let change =
        before == after ? Self.text(before) : "\(Self.text(before)) → \(Self.text(after))"
      let mark = before == after ? " " : "*"
      try Terminal.print("  \(mark) \(label)  \(change)")
    }
  }

  private static func text(_ value: SQLValue) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let value): String(value)
    case .real(let value): value.description
    case .text(let value):
      value.count > 60 ? "\(value.prefix(59))…".quotedForMessage : value.quotedForMessage
    case .blob(let bytes): "\(bytes.count) bytes"
    }
  }
}

extension JobPlan {
  /// What computes the rows of a transform, in words; nil of other actions.
  fileprivate var program: String? {
    guard case .transform(let transform) = job.action else { return nil }
    return switch transform.program {
    case .handler(let name): "handler \(name.quotedForMessage)"
    case .command: "command"
    }
  }
}

/// A plan with what comes next beside its fields.
private struct PlanLine: Encodable {
  let report: PlanReport
  let next: NextStep

  private enum CodingKeys: CodingKey { case next, nextWords }

  func encode(to encoder: any Encoder) throws {
    try report.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(next.name, forKey: .next)
    try container.encode(next.words, forKey: .nextWords)
  }
}
