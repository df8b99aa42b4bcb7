public import ArgumentParser
import BatchIdentifiers
public import BatchPipeline
import BatchSQLite
import SystemPackage

struct IdsShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Prints, counts or saves the identifiers of a source.",
    usage: usage("ids show <source> [<options>]")
  )

  @Argument(help: "A job file, identifier file or checkpoint.", completion: .file())
  var source: String

  @Option(
    help: """
      Which identifiers: all, remaining or done; or, of those done, succeeded, unchanged, vanished, \
      noLongerMatching or failed.
      """
  )
  var outcome = IdentifierSelection.Outcome.all

  @Option(help: "Only the rows of the run's canary, or the rest: all, canary or rest.")
  var part = IdentifierSelection.Part.all

  @Flag(
    help: """
      Print why identifiers failed, as CSV, or as JSON with --format json; with --count, how many \
      failed for each reason.
      """
  )
  var reasons = false

  @OptionGroup var recorded: RecordedRunArgument
  @OptionGroup var output: IdentifierOutput

  func validate() throws {
    if reasons, output.output != nil {
      throw ValidationError("--reasons and --output exclude each other.")
    }
  }

  func run() async throws {
    if reasons { return try await printReasons() }
    let selection = try await selection(of: source, outcome: outcome, part, run: recorded.run)
    try await output.emit(
      try selection.list,
      of: try await store,
      permissions: selection.permissions
    )
  }

  /// The database of a job, which knows more about rows than their keys; nil for a file.
  private var store: Store? {
    get async throws(BatchError) {
      guard FilePath(source).extension == "json", output.format != .key,
        let cause = try? FilePath(source).records().cause, cause.database.server == nil
      else { return nil }
      return try? await cause.storeToRead()
    }
  }
}

extension IdsShowCommand {
  private func printReasons() async throws {
    let selection = try await selection(of: source, outcome: .failed, part, run: recorded.run)
    if output.count {
      for reason in try selection.failureCounts(atMost: .max) {
        try Terminal.print("\(reason.count) \(reason.code): \(reason.message)")
      }
      return
    }
    let reasons = try selection.reasons()
    if output.format == .json {
      for reason in reasons { try Terminal.printJSON(reason, pretty: false) }
      return
    }
    try Terminal.print("key,code,message,attempt,failedAt\r")
    for reason in reasons {
      let fields = [
        reason.key, reason.code, reason.message, String(reason.attempt), reason.failedAt,
      ]
      try Terminal.print(fields.map(\.asCSV).joined(separator: ",") + "\r")
    }
  }
}

extension String {
  /// Quotes the text for CSV where RFC 4180 requires it.
  fileprivate var asCSV: String {
    contains { ",\"\r\n".contains($0) } ? "\"\(replacing("\"", with: "\"\""))\"" : self
  }
}

/// Selects identifiers of a job's last run, or of a file.
func selection(
  of source: String,
  outcome: IdentifierSelection.Outcome = .all,
  _ part: IdentifierSelection.Part = .all,
  run: String? = nil
) async throws(BatchError) -> IdentifierSelection {
  if source == Job.standardInputName {
    return try await runRecords(named: source).identifiers(outcome, part, ofRun: run)
  }
  let path = FilePath(source)
  guard Job.isJobFile(path) else {
    // Only the store knows which rows of a run by objects are done; an undo on a server has no file.
    if outcome != .all || part != .all || run != nil || FileSystem.status(of: path) == nil,
      let records = try? path.records()
    {
      return try await records.identifiers(outcome, part, ofRun: run)
    }
    if run != nil || part != .all {
      throw BatchError(
        .invalidJob,
        "a file has the identifiers of one run, and not which are its canary",
        at: source,
        remedy: "name the job file"
      )
    }
    return try IdentifierSelection(ofFile: path, outcome: outcome)
  }
  return try await path.records().identifiers(outcome, part, ofRun: run)
}

extension IdentifierSelection.Outcome: ExpressibleByArgument {}
extension IdentifierSelection.Part: ExpressibleByArgument {}
