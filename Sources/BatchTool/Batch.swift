import ArgumentParser
import BatchEngine
import BatchIdentifiers
import BatchPipeline
import BatchStore
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What the program is called: an executable with handlers of its own has a name of its own.
private let toolName = FilePath(CommandLine.arguments[0]).lastComponent?.string ?? "batch"

/// How a command is called, in a line that fits.
func usage(_ command: String) -> String { "\(toolName) \(command)" }

/// The `batch` command.
struct Batch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: toolName,
    abstract: "Runs batch jobs over the rows of an SQLite database, exactly once.",
    discussion: """
        batch new                writes a job file, and asks what it needs
        batch plan job.json      shows what would happen; writes nothing
        batch run job.json       runs the job, or resumes it after a kill

      Exit status: 0 completed, 1 failed, 2 refused, 3 stopped, 4 completed with failed \
      identifiers, 5 another run is alive, 6 done but not all said, 64 wrong usage.
      """,
    version: batchVersion,
    subcommands: [
      NewCommand.self, ExplainCommand.self, ValidateCommand.self, PlanCommand.self,
      RehearseCommand.self, RunCommand.self,
      RetryFailedCommand.self,
      UndoCommand.self, VerifyCommand.self,
      StatusCommand.self, PauseCommand.self, ResumeCommand.self, CancelCommand.self,
      SetCommand.self, HistoryCommand.self, ReportCommand.self,
      IdsCommand.self, InspectCommand.self, SchemaCommand.self, GenerateCommand.self,
      CleanupCommand.self,
    ]
  )

  static func run() async {
    // A reader that has what it wanted, such as head, ends the command without an error. Runs go on.
    signal(SIGPIPE) { _ in _exit(0) }
    if let remedy = remedy(for: Array(CommandLine.arguments.dropFirst())) {
      Self.exit(withError: ValidationError(remedy))
    }
    do {
      var command = try parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch let error as BatchError {
      let error = error.inWordsOfJobs
      Terminal.complain(error)
      ExitStatus(of: error).end()
    } catch {
      exit(withError: error)
    }
  }
}

extension Batch {
  /// What other programs call the commands here.
  private static let synonyms = [
    "start": "run", "exec": "run", "execute": "run", "go": "run", "stop": "cancel",
    "kill": "cancel",
    "retry": "retry-failed", "check": "validate", "lint": "validate",
    "preview": "plan", "rehearsal": "rehearse", "simulate": "rehearse", "test": "rehearse",
    "list": "ids", "show": "status", "rollback": "undo", "revert": "undo",
    "tables": "schema", "clean": "cleanup", "create": "new", "init": "new", "doc": "explain",
  ]

  /// What is wrong with a command line that names no command, or an option of other programs.
  private static func remedy(for arguments: [String]) -> String? {
    let commands = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    if let first = arguments.first, !first.hasPrefix("-"), !commands.contains(first) {
      let meant = synonyms[first] ?? nearestName(to: first, among: commands)
      let advice =
        meant.map { "did you mean batch \($0)?" } ?? remedyListing(commands, kind: "commands")
      return "there is no command \(first.quotedForMessage); \(advice)"
    }
    guard arguments.contains("--dry-run"), arguments.first != "run" else { return nil }
    return "only batch run has --dry-run; batch plan JOB says what would happen, and writes nothing"
  }
}

extension ExitStatus {
  /// Ends the process.
  func end() -> Never { exit(rawValue) }
}
