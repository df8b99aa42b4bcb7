public import ArgumentParser
import BatchIdentifiers
public import BatchPipeline
import SystemPackage

struct IdsShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Prints, counts or saves the identifiers of a source (the default)."
  )

  @Argument(help: "A job file, identifier file or checkpoint.", completion: .file())
  var source: String

  @Option(help: "Which identifiers: all, remaining, done or failed.")
  var outcome = IdentifierSelection.Outcome.all

  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    let selection = try await selection(of: source, outcome: outcome)
    try output.emit(try selection.list, permissions: selection.permissions)
  }
}

/// The identifiers of a job's last run, or of a file.
func selection(
  of source: String,
  outcome: IdentifierSelection.Outcome = .all
) async throws(BatchError) -> IdentifierSelection {
  let path = FilePath(source)
  guard path.extension == "json" else {
    // What is done of a run by objects its store knows.
    if outcome != .all, let job = try? Job(ofRunAt: path) {
      return try await IdentifierSelection(ofJob: job, outcome: outcome)
    }
    return try IdentifierSelection(ofFile: path, outcome: outcome)
  }
  return try await IdentifierSelection(ofJob: Job(ofRunAt: path), outcome: outcome)
}

extension IdentifierSelection.Outcome: ExpressibleByArgument {}
