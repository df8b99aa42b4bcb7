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
    try output.emit(try await identifiers(of: source, outcome: outcome))
  }
}

/// The identifiers of a job's last run, or of a file.
func identifiers(
  of source: String,
  outcome: IdentifierSelection.Outcome = .all
) async throws(BatchError) -> IdentifierList {
  let path = FilePath(source)
  let selection =
    if path.extension == "json" {
      try await IdentifierSelection(ofJob: Job(contentsOf: path), outcome: outcome)
    } else {
      try IdentifierSelection(ofFile: path, outcome: outcome)
    }
  return try selection.list
}

extension IdentifierSelection.Outcome: ExpressibleByArgument {}
