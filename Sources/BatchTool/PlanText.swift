import BatchIdentifiers
import BatchPipeline

struct PlanText {
  let job: Job
  let report: PlanReport

  static func print(
    of job: Job,
    _ options: BatchRun.Options,
    digest: Bool = false,
    json: Bool
  ) async throws(BatchError) {
    let report = try await job.plan(options, handlers: BatchTool.handlers, digesting: digest)
    if json { return try Terminal.printJSON(report, pretty: true) }
    let lines = PlanText(job: job, report: report).lines(width: Terminal.outputColumns)
    try Terminal.print(lines.joined(separator: "\n"))
    for warning in report.warnings { Terminal.warn(warning) }
  }

  func lines(width: Int?) -> [String] {
    var lines = TextLayout.labelled(facts, width: width)
    if !report.sample.isEmpty {
      let unknown = program.map {
        ", before the run; a plan does not call the \($0), which computes the new values"
      }
      lines += [""]
      lines += TextLayout.wrapped(
        "the first \(report.sample.count)\(unknown ?? ""):",
        width: width
      )
      lines += SampleText(report).lines(width: width ?? TextLayout.standardWidth)
    }
    return lines + [""] + TextLayout.wrapped("batch run \(report.nextWords)", width: width)
  }

  private var matches: String {
    let rows = Format.count(report.matches, report.load == nil ? "row" : "record")
    guard let first = report.firstChunk, report.chunks > 1 else {
      return "\(rows) in \(Format.count(report.chunks, "chunk"))"
    }
    return "\(rows) in chunks of \(first.grouped) at first"
  }

  private static func listed(_ types: [String: String]) -> String {
    types.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
  }

  private var facts: [(label: String, text: String)] {
    let server = report.server.map { ", PostgreSQL \($0), as \(report.role ?? "")" }
    let key = report.key.joined(separator: ", ")
    var facts: [(label: String, text: String)] = [
      ("job", "\(report.job) (\(report.action))"),
      ("database", "\(report.database)\(server ?? "")"),
      ("entity", key.isEmpty ? report.entity : "\(report.entity), identified by \(key)"),
      ("matches", matches),
    ]
    if case .export(let export) = job.action, export.isInParts, !export.partitions.isEmpty {
      let folders = export.partitions.map { "\($0)" }.joined(separator: "/")
      facts.append(("partitions", "\(export.file.string)/\(folders)"))
    }
    if let increment = report.increment {
      let first = increment.from == nil ? " (first increment: no earlier one is recorded)" : ""
      facts.append(("increment", increment.words + first))
    }
    if let canary = job.canary, canary.rows < report.matches, report.next == "begin" {
      facts.append(
        ("canary", "\(Format.count(canary.rows, "row")) first, then \(canary.wait.words)")
      )
    }
    if let digest = report.digest { facts.append(("digest", digest)) }
    if let types = report.types { facts.append(("types", Self.listed(types))) }
    if let load = report.load {
      facts += load.files.prefix(5).enumerated().map { index, file in
        (
          index == 0 ? "files" : "",
          "\(file.path): \(Format.count(file.records, "record")), \(Format.bytes(file.bytes))"
        )
      }
      if load.files.count > 5 { facts.append(("", "and \((load.files.count - 5).grouped) more")) }
      facts.append(("types", Self.listed(load.types)))
      facts.append(("conflicts", load.conflictWords))
    } else if let file = report.identifiers {
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
    if report.load == nil { facts.append(("recheck", recheck)) }
    for (label, lines) in [
      ("locks", report.locks), ("triggers", report.triggers), ("keys", report.foreignKeys),
      ("advice", report.advice),
    ] {
      facts += (lines ?? []).enumerated().map { ($0 == 0 ? label : "", $1) }
    }
    if let unchanged = report.unchanged {
      let first = Format.count(unchanged.of, "row")
      facts.append(("unchanged", "\(unchanged.count.grouped) of the first \(first)"))
    }
    if let tried = report.triedRows, tried > 0 {
      let first = "the first \(Format.count(tried, "row"))"
      let isPart = tried < report.matches
      let rows = isPart ? "\(first) only; later rows may still fail" : "all rows"
      let untried = report.untried.map { ", without \($0)" } ?? ""
      facts.append(("tried", rows + untried))
    }
    if let space = report.afterwards {
      let needs = space.neededBytes.map {
        ", and needs up to \(Format.bytes(Int($0))) of free space"
      }
      let free = space.freeBytes.map {
        ", of which \(Format.bytes(Int($0))) are free before the run"
      }
      facts.append(
        (
          "afterwards",
          "\(space.by) of \(Format.bytes(Int(space.bytes)))\(free ?? "")\(needs ?? "")"
        )
      )
    }
    if let seconds = report.estimatedSeconds {
      facts.append(("time", time(seconds)))
    } else if let program {
      facts.append(("time", "unknown: it depends on the \(program)"))
    }
    return facts
  }

  /// Formats the time of the run: `about 3.1 s to 8.9 s`.
  private func time(_ seconds: Double) -> String {
    if let pace = report.pace { return "about \(Self.rounded(seconds)), because of \(pace)" }
    guard let least = report.leastSeconds, let most = report.mostSeconds else {
      return "more than \(Self.rounded(seconds))"
    }
    return
      "about \(Self.rounded(least)) to \(Self.rounded(most)), as long as nobody else needs the disk"
  }

  /// Rounds an estimate, which is not precise to the hundredth.
  private static func rounded(_ seconds: Double) -> String {
    Format.seconds(seconds < 1 ? (seconds * 100).rounded() / 100 : (seconds * 10).rounded() / 10)
  }

  /// The terms that are checked again for each row, and those that are not, with the reasons.
  private var recheck: String {
    let terms = report.recheck.terms.map { "`\($0)`" }.joined(separator: " and ")
    let omitted = report.recheck.notRechecked.map { "`\($0.term)`, which \($0.because)" }
    let row = terms.isEmpty ? "the row" : "the row, and \(terms)"
    if report.recheck.mode == "off" { return "the row only: recheck is off" }
    return omitted.isEmpty ? row : "\(row); not rechecked: \(omitted.joined(separator: "; "))"
  }

  private static func oneLine(_ sql: String) -> String {
    sql.split(whereSeparator: \.isNewline).joined(separator: " ").replacing(" )", with: ")")
  }

  private var program: String? {
    guard case .transform(let transform) = job.action else { return nil }
    return switch transform.program {
    case .handler(let name): "handler \(name.quotedForMessage)"
    case .command: "command"
    }
  }
}

extension PlanReport.Load {
  fileprivate var conflictWords: String {
    switch onConflict {
    case "ignore": "a record whose row exists is left out"
    case "update": "a record whose row exists updates it"
    default: "a record whose row exists fails"
    }
  }
}

extension RunPolicy.Canary.Wait {
  /// What happens after the canary.
  fileprivate var words: String {
    switch self {
    case .pause: "a pause until batch resume"
    case .time(let time): "a wait of \(time.shown)"
    case .verification: "a look whether they are as the run left them"
    }
  }
}
