import BatchIdentifiers
import BatchPipeline
import BatchStore

/// A plan for people.
struct PlanText {
  let plan: JobPlan
  let report: PlanReport
  let next: NextStep

  /// Finds out what a run would do.
  init(
    _ plan: JobPlan,
    chunkSize: Int? = nil,
    options: BatchRun.Options,
    handlers: [String: TransformHandler] = BatchTool.handlers
  ) async throws(BatchError) {
    self.plan = plan
    report = try await plan.report(chunkSize: chunkSize)
    next = await NextStep(of: plan.job, options: options, handlers: handlers)
  }

  /// Prints the plan of a job.
  static func print(
    of arguments: JobArguments,
    chunkSize: Int?,
    runID: String?,
    fresh: Bool = false,
    json: Bool
  ) async throws(BatchError) {
    let job = try await arguments.load()
    var options = BatchRun.Options()
    options.runID = runID
    options.fresh = fresh
    options.parameterTexts = arguments.parameters
    #if PostgreSQL
    if job.database.server != nil {
      return try await print(
        ofShared: job,
        arguments,
        chunkSize: chunkSize,
        options: options,
        json: json
      )
    }
    #endif
    let text = try await PlanText(arguments.plan(of: job), chunkSize: chunkSize, options: options)
    if json {
      let line = PlanLine(report: text.report, next: text.next)
      return try Terminal.printJSON(line, pretty: true)
    }
    let lines = text.lines(width: Terminal.outputColumns)
    try Terminal.print(lines.joined(separator: "\n"))
    for warning in text.report.warnings { Terminal.warn(warning) }
  }

  /// The plan, line by line.
  func lines(width: Int?) -> [String] {
    var lines = TextLayout.labelled(facts, width: width)
    if !report.sample.isEmpty {
      let unknown = plan.program.map {
        ", before the run; a plan does not call the \($0), which computes the new values"
      }
      lines += [""]
      lines += TextLayout.wrapped(
        "the first \(report.sample.count)\(unknown ?? ""):",
        width: width
      )
      lines += SampleText(report.sample, of: plan.entity).lines(
        width: width ?? TextLayout.standardWidth
      )
    }
    return lines + [""] + TextLayout.wrapped("batch run \(next.words)", width: width)
  }

  /// The number of rows and chunks.
  static func matches(_ rows: Int, inChunks chunks: Int, first: Int?) -> String {
    let rows = Format.count(rows, "row")
    guard let first, chunks > 1 else { return "\(rows) in \(Format.count(chunks, "chunk"))" }
    return "\(rows) in chunks of \(first.grouped) at first"
  }

  private var facts: [(label: String, text: String)] {
    let key = plan.entity.key?.columns.joined(separator: ", ") ?? ""
    var facts: [(label: String, text: String)] = [
      ("job", "\(plan.job.name) (\(plan.job.action.type))"),
      ("database", plan.store.path),
      ("entity", "\(plan.entity.name), identified by \(key)"),
      (
        "matches",
        Self.matches(report.matches, inChunks: report.chunks, first: report.firstChunk)
      ),
    ]
    if let file = report.identifiers {
      facts.append(("rows", "those in \(file), in its order"))
    } else {
      facts.append(("fetch", Self.oneLine(report.sql.fetch)))
      facts += report.queryPlan.map { ("", $0) }
    }
    if let create = report.sql.create { facts.append(("create", Self.oneLine(create))) }
    facts.append(("apply", Self.oneLine(report.sql.apply)))
    if let lookUp = report.lookUp {
      facts += lookUp.queryPlan.map { ("", $0) }
      if lookUp.isCopied {
        let size = lookUp.copyBytes.map { ", about \(Format.bytes($0))" } ?? ""
        facts.append(
          (
            "copy",
            "all rows are read once into a temporary file\(size), since SQLite cannot find one by its key"
              + " without reading many"
          )
        )
      }
    }
    facts.append(("recheck", Self.text(of: report.recheck)))
    if let unchanged = report.unchanged {
      let first = Format.count(unchanged.of, "row")
      facts.append(("unchanged", "\(unchanged.count.grouped) of the first \(first)"))
    }
    if let tried = report.triedRows, tried > 0 {
      let first = "the first \(Format.count(tried, "row"))"
      let isPart = tried < report.matches
      facts.append(("tried", isPart ? "\(first) only; later rows may still fail" : "all rows"))
    }
    if let seconds = report.estimatedSeconds {
      facts.append(("time", time(seconds)))
    } else if let program = plan.program {
      facts.append(("time", "unknown: it depends on the \(program)"))
    }
    return facts
  }

  /// How long the run takes: `about 3.1 s to 8.9 s`.
  private func time(_ seconds: Double) -> String {
    if report.recheck.isInterrupted { return "more than \(Self.rounded(seconds))" }
    if let pace = report.pace { return "about \(Self.rounded(seconds)), because of \(pace)" }
    guard let least = report.leastSeconds, let most = report.mostSeconds else {
      return "about \(Self.rounded(seconds))"
    }
    return
      "about \(Self.rounded(least)) to \(Self.rounded(most)), as long as nobody else needs the disk"
  }

  /// An estimate is not exact to the hundredth.
  private static func rounded(_ seconds: Double) -> String {
    Format.seconds(seconds < 1 ? (seconds * 100).rounded() / 100 : (seconds * 10).rounded() / 10)
  }

  /// What must still hold for a row at its turn; what need not, and why.
  static func text(of recheck: PlanReport.Rechecking) -> String {
    let terms = recheck.terms.map { "`\($0)`" }.joined(separator: " and ")
    let omitted = recheck.notRechecked.map { "`\($0.term)`, which \($0.because)" }
    let row = terms.isEmpty ? "the row" : "the row, and \(terms)"
    if recheck.mode == "off" { return "the row only: recheck is off" }
    return omitted.isEmpty ? row : "\(row); not rechecked: \(omitted.joined(separator: "; "))"
  }

  private static func oneLine(_ sql: String) -> String {
    sql.split(whereSeparator: \.isNewline).joined(separator: " ").replacing(" )", with: ")")
  }
}

extension JobPlan {
  /// What computes the rows of a transform, in words; nil for other actions.
  fileprivate var program: String? {
    guard case .transform(let transform) = job.action else { return nil }
    return switch transform.program {
    case .handler(let name): "handler \(name.quotedForMessage)"
    case .command: "command"
    }
  }
}

/// A plan with its next step beside its fields.
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
