import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct IdsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ids",
    abstract: "Prints, counts or saves the identifiers of a run or of a file.",
    discussion: """
      The argument is a job file, whose last run is meant, or an identifier file or checkpoint.

        batch ids job.json --outcome remaining --count
        batch ids job.json --outcome done --format key
        batch ids job.json --output all.ids
      """
  )

  /// The part of the identifiers that is wanted.
  enum OutcomeOption: String, CaseIterable, ExpressibleByArgument {
    case all, remaining, done, failed
  }

  /// How identifiers are written.
  enum FormatOption: String, CaseIterable, ExpressibleByArgument {
    case uri, key, json
  }

  @Argument(help: "A job file, identifier file or checkpoint.", completion: .file())
  var source: String

  @Option(help: "Which identifiers: all, remaining, done or failed.")
  var outcome = OutcomeOption.all

  @Option(help: "How they are written: uri, key or json.")
  var format = FormatOption.uri

  @Flag(help: "Print their number only.")
  var count = false

  @Option(help: ArgumentHelp("Save them to a file instead.", valueName: "file.ids"))
  var output: String?

  func validate() throws {
    if count, output != nil { throw ValidationError("--count and --output exclude each other.") }
  }

  func run() async throws {
    let path = FilePath(source)
    let selection =
      path.extension == "json"
      ? try await IdentifierSelection(ofJob: Job(contentsOf: path), outcome: selected)
      : try IdentifierSelection(ofFile: path, outcome: selected)
    if count {
      Terminal.print(String(selection.count))
    } else if let output {
      try selection.save(to: FilePath(output))
    } else {
      try print(selection)
    }
  }

  private var selected: IdentifierSelection.Outcome {
    switch outcome {
    case .all: .all
    case .remaining: .remaining
    case .done: .done
    case .failed: .failed
    }
  }

  private func print(_ selection: IdentifierSelection) throws {
    // Written in blocks: a system call for each line would take longer than all the rest.
    var lines = ""
    try selection.forEach { identifier throws(BatchError) in
      switch format {
      case .uri: lines += identifier.uriString
      case .key: lines += identifier.key?.description ?? identifier.primaryKey
      case .json: lines += try Self.json(identifier)
      }
      lines += "\n"
      if lines.utf8.count > 1 << 16 {
        Terminal.print(lines, terminator: "")
        lines.removeAll(keepingCapacity: true)
      }
    }
    Terminal.print(lines, terminator: "")
  }

  private static func json(_ identifier: PersistentIdentifier) throws(BatchError) -> String {
    do {
      return try Terminal.jsonText(identifier)
    } catch {
      throw BatchError(.invalidIdentifier, "\(identifier) has no JSON form", underlying: error)
    }
  }
}
