import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchSQLite
import SystemPackage

struct RehearseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rehearse",
    abstract: "Runs a job without effect, shows what changed.",
    usage: usage("rehearse <job> [<options>]"),
    discussion: """
      On SQLite, the run works on a clone in a folder of its own, which is removed at the end unless \
      you give --keep. On PostgreSQL, it works on some of the rows, and rolls back each chunk. The \
      database, the job's record, an export's file and the report stay as they are. Hooks do not run. \
      The command or handler of a transform does, with BATCH_REHEARSAL=1 in its environment and all its \
      effects elsewhere.

      Exit status: 0, 1 if the run failed, 2 if it was refused, 4 if identifiers failed.
      """
  )

  @OptionGroup var job: JobArguments

  @Option(help: "The number of workers; overrides the job.")
  var workers: Int?

  @Option(help: "Identifiers per chunk; overrides the job.")
  var chunkSize: Int?

  @Option(
    help: "Where to make the folder; default: beside the database or an export.",
    completion: .directory
  )
  var folder: String?

  @Option(
    help: ArgumentHelp(
      "PostgreSQL: rows to rehearse, from all parts of the list; default: 10000.",
      valueName: "number|all"
    )
  )
  var rows: String?

  @Option(
    help: ArgumentHelp("PostgreSQL: another database with the same tables.", valueName: "url")
  )
  var on: String?

  @Flag(help: "Keep the folder, with the clone after the run.")
  var keep = false

  @Option(
    help: "How many rows to show per changed column, and per table of added and removed ones."
  )
  var samples = 3

  @Flag(help: "Print the result as JSON.")
  var json = false

  @Flag(help: "Print only results and errors.")
  var quiet = false

  func validate() throws {
    try RunArguments.check(workers: workers, chunkSize: chunkSize)
    if !(0...Rehearsal.maximumSamples).contains(samples) {
      throw ValidationError("--samples must be from 0 to \(Rehearsal.maximumSamples).")
    }
    if let rows, rows != "all", Int(rows).map({ $0 < 1 }) ?? true {
      throw ValidationError("--rows must be a positive number, or all.")
    }
  }

  func run() async throws {
    let job = try await job.load()
    try refuseServerOptions(for: job)
    var options = self.job.options
    options.workers = workers
    options.chunkSize = chunkSize
    var settings = Rehearsal.Settings()
    settings.folder = folder.map { FilePath($0) }
    settings.keepsFolder = keep
    settings.samples = samples
    if let rows { settings.rows = Int(rows) }
    settings.server = on
    let printer = RehearsalPrinter(quiet: quiet, hasSample: job.database.server != nil)
    options.progressInterval = printer.interval

    signal(SIGPIPE, SIG_IGN)
    let rehearsing = Task { [options, settings] () -> Result<Rehearsal, BatchError> in
      do throws(BatchError) {
        return .success(
          try await job.rehearse(
            options,
            handlers: BatchTool.handlers,
            settings: settings,
            onEvent: { printer.show($0) }
          )
        )
      } catch {
        return .failure(error)
      }
    }
    let signals = StopSignals(
      quiet: quiet,
      saying: keep || job.database.server != nil
        ? "finishing the current step" : "finishing the current step, then removing the clone",
      atOnce: { printer.showFolder() },
      stop: { rehearsing.cancel() }
    )
    await signals.listen()
    defer { signals.cancel() }
    let answer = await rehearsing.value
    printer.end()
    let rehearsal = try answer.get()
    if json {
      try Terminal.printJSON(rehearsal, pretty: true)
    } else {
      try RehearsalText.print(rehearsal)
    }
    if let failure = rehearsal.summary.failure { Terminal.complain(failure) }
    for note in rehearsal.notes { Terminal.warn(note) }
    let status = ExitStatus(of: rehearsal.summary)
    if status != .completed { throw ExitCode(status.rawValue) }
  }

  private func refuseServerOptions(for job: Job) throws(BatchError) {
    guard job.database.server == nil else { return }
    let option = on != nil ? "--on" : rows.map { $0 == "all" ? nil : "--rows" } ?? nil
    guard let option else { return }
    throw BatchError(
      .invalidJob,
      "\(option) is for PostgreSQL: a rehearsal on SQLite has all rows of a clone",
      at: option,
      remedy: "leave it out"
    )
  }
}

private final class RehearsalPrinter: Sendable {
  private let quiet: Bool
  private let hasSample: Bool
  private let run: ProgressPrinter
  private let state = Lock(State())

  private struct State {
    var folder: FilePath?
    var bytes: Int64 = 0
    var last: ContinuousClock.Instant?
  }

  init(quiet: Bool, hasSample: Bool) {
    (self.quiet, self.hasSample) = (quiet, hasSample)
    run = ProgressPrinter(json: false, quiet: quiet)
  }

  var interval: Duration { run.interval }

  func show(_ event: Rehearsal.Event) {
    switch event {
    case .began(let folder, let bytes):
      state.withLock { $0 = State(folder: folder, bytes: bytes) }
      guard !quiet else { return }
      let what = bytes > 0 ? "cloning \(Format.bytes(Int(bytes)))" : "exporting"
      Terminal.say("\(what) into \(folder)")
    case .copied(let bytes):
      let all = state.withLock { $0.bytes }
      showLine("\(Format.bytes(Int(bytes))) of \(Format.bytes(Int(all))) copied")
    case .run(.started(let summary)) where hasSample:
      guard !quiet else { return }
      let identifiers = Format.count(summary.total, "identifier")
      Terminal.say("\(summary.job): \(identifiers) to rehearse")
    case .run(let event): run.print(event)
    case .compared(let rows): showLine("\(Format.count(rows, "row")) compared")
    }
  }

  private func showLine(_ line: String) {
    guard !quiet, Terminal.isInteractive else { return }
    let now = ContinuousClock.now
    let isDue = state.withLock { state in
      if let last = state.last, now - last < .milliseconds(200) { return false }
      state.last = now
      return true
    }
    if isDue { Terminal.say("\r\u{1b}[K\(line)", terminator: "") }
  }

  func end() {
    run.finishRetries()
    if !quiet, Terminal.isInteractive { Terminal.say("\r\u{1b}[K", terminator: "") }
  }

  /// Names the clone that is left if the process ends at once.
  func showFolder() {
    guard let folder = state.withLock({ $0.folder }) else { return }
    Terminal.say("the folder \(folder) remains; remove it")
  }
}

private enum RehearsalText {
  static func print(_ rehearsal: Rehearsal) throws(BatchError) {
    let lines = SummaryText.lines(
      rehearsal.summary,
      of: "rehearsed: ",
      isReal: false,
      adding: facts(of: rehearsal) + (rehearsal.sample.map { facts(of: $0, rehearsal) } ?? [])
    )
    try Terminal.print(lines.joined(separator: "\n"))
    if !rehearsal.failures.isEmpty { try Terminal.print("\nfailed:") }
    for failure in rehearsal.failures {
      let text = "  \(failure.count.grouped) \(failure.code): \(failure.message)"
      try Terminal.print("\(text) (first \(failure.firstKey))".onOneLine)
    }
    let triggers = rehearsal.sample?.triggers ?? []
    if let rows = triggers.first?.rows {
      try Terminal.print("\ntriggers and constraints, for \(Format.count(rows, "row")):")
    }
    for trigger in triggers {
      let text = "  \(trigger.name) on \(trigger.table): \(Format.count(trigger.calls, "call"))"
      try Terminal.print("\(text), \(milliseconds(trigger.seconds))".onOneLine)
    }
    try Terminal.print(rehearsal.tables.isEmpty ? "\nnothing changed" : "\nchanged:")
    for table in rehearsal.tables { try print(table) }
  }

  private static func facts(of rehearsal: Rehearsal) -> [SummaryText.Fact] {
    let seconds = rehearsal.seconds
    let clone = rehearsal.sharesBlocks == true ? "clone (shares blocks)" : "copy"
    let cloning = seconds.clone.map { "\(clone) \(Format.seconds($0)), " } ?? ""
    var facts: [SummaryText.Fact] = [
      (
        "time",
        "\(cloning)run \(Format.seconds(seconds.run)),"
          + " comparison \(Format.seconds(seconds.comparison))"
      )
    ]
    if let before = rehearsal.bytesBefore, let after = rehearsal.bytesAfter {
      facts.append(("database", "\(bytes(before)) before, \(bytes(after)) after"))
    }
    if let folder = rehearsal.folder {
      let label = rehearsal.sample == nil ? "clone" : "folder"
      facts.append((label, rehearsal.isKept ? folder : "removed"))
    }
    if rehearsal.comparedTables > 0 || rehearsal.sample == nil {
      let rows = Format.count(rehearsal.comparedRows, "row")
      facts.append(("compared", "\(rows) in \(Format.count(rehearsal.comparedTables, "table"))"))
    }
    return facts
  }

  private static func facts(
    of sample: RehearsalSample,
    _ rehearsal: Rehearsal
  ) -> [SummaryText.Fact] {
    let done = rehearsal.summary.done
    let rows = Format.count(sample.selected, "row")
    let places = Format.count(sample.places, "place")
    let isWhole = rehearsal.summary.total == sample.selected
    var facts: [SummaryText.Fact] = [
      (
        "sample",
        isWhole
          ? "all \(rows) of the list"
          : "\(rehearsal.summary.total.grouped) of \(rows), from \(places) of the list"
      )
    ]
    if let seconds = sample.secondsPerChunk {
      facts.append(("chunk", "\(milliseconds(seconds)) on average, without its COMMIT"))
    }
    if let bytes = sample.walBytes, done > 0 {
      facts.append(
        (
          "WAL",
          "\(Format.bytes(bytes)), \(Format.bytes(bytes / done)) a row, of the whole server"
        )
      )
    }
    if let seconds = sample.estimatedSeconds {
      let log = sample.estimatedWALBytes.map { ", \(Format.bytes($0)) of WAL" } ?? ""
      facts.append(("a run", "about \(Format.seconds(seconds))\(log), extrapolated"))
    }
    return facts
  }

  private static func print(_ table: TableChanges) throws(BatchError) {
    let counts = [("changed", table.changed), ("added", table.added), ("removed", table.removed)]
      .filter { $0.1 > 0 }.map { "\(Format.count($0.1, "row")) \($0.0)" }
    try Terminal.print("  \(table.table): \(counts.joined(separator: ", "))".onOneLine)
    for column in table.columns {
      try Terminal.print("    \(column.name): \(Format.count(column.rows, "row"))".onOneLine)
      for sample in column.samples {
        let text = "      \(key(sample.key)): \(sample.before) → \(sample.after)"
        try Terminal.print(text.onOneLine)
      }
    }
    for (sign, rows) in [("+", table.addedRows), ("-", table.removedRows)] {
      for row in rows {
        let values = row.values.map { "\($0.name): \($0.value)" }.joined(separator: ", ")
        try Terminal.print("    \(sign) \(key(row.key))  \(values)".onOneLine)
      }
    }
  }

  private static func key(_ key: [StoreDifference.Key]) -> String {
    key.map { "\($0.name) = \($0.value)" }.joined(separator: ", ")
  }

  private static func milliseconds(_ seconds: Double) -> String {
    "\(Format.decimal(seconds * 1000)) ms"
  }

  private static func bytes(_ count: Int64) -> String { Format.bytes(Int(count)) }
}
