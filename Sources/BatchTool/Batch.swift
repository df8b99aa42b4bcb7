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

/// The `batch` command.
struct Batch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    // An executable with handlers of its own has a name of its own.
    commandName: FilePath(CommandLine.arguments[0]).lastComponent?.string ?? "batch",
    abstract: "Runs batch jobs over the rows of an SQLite database, exactly once.",
    discussion: """
      A job file says which rows of which database, and what to do with them. `batch` fetches \
      their identifiers first, then works through them in chunks. Kill it at any moment: the same \
      command goes on where it was.

        batch plan job.json      what would happen; writes nothing
        batch rehearse job.json  what does happen, on a clone
        batch run job.json       run, or resume
        batch status job.json    how it stands

      Exit status: 0 completed · 1 failed, resumable · 2 refused, nothing was written · \
      3 stopped, resumable · 4 completed with failed identifiers · 5 another run is alive · \
      6 done, but the output could not be written · \
      64 wrong usage.
      """,
    version: batchVersion,
    subcommands: [
      ValidateCommand.self, PlanCommand.self, RehearseCommand.self, RunCommand.self,
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
    "retry": "retry-failed", "check": "validate", "lint": "validate", "explain": "plan",
    "preview": "plan", "rehearsal": "rehearse", "simulate": "rehearse", "test": "rehearse",
    "list": "ids", "show": "status", "rollback": "undo", "revert": "undo",
    "tables": "schema", "clean": "cleanup",
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
    guard arguments.contains("--dry-run") else { return nil }
    return "there is no option --dry-run; batch plan JOB says what would happen, and writes nothing"
  }
}

extension ExitStatus {
  /// Ends the process.
  func end() -> Never { exit(rawValue) }
}
