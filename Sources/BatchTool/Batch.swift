import ArgumentParser
import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchSQLite
import SystemPackage

/// The name of the executable: one with handlers of its own has another name.
private let toolName = FilePath(CommandLine.arguments[0]).lastComponent?.string ?? "batch"

/// The usage line of a command, short enough for a terminal.
func usage(_ command: String) -> String { "\(toolName) \(command)" }

struct Batch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: toolName,
    abstract: "Runs a job over the rows of an SQLite database, each exactly once.",
    discussion: """
        batch run job.json   runs the job, or resumes it; batch plan only shows it

      Exit status: 0 completed, 1 failed, 2 refused, 3 stopped, 4 some rows failed,
      5 another run is alive, 6 not reported, 7 unapproved, 8 overdue, 64 usage.
      """,
    version: batchVersion,
    subcommands: [
      NewCommand.self, ExplainCommand.self, ValidateCommand.self, PlanCommand.self,
      RehearseCommand.self, RunCommand.self,
      RetryFailedCommand.self,
      ApproveCommand.self, UndoCommand.self, VerifyCommand.self,
      StatusCommand.self, PauseCommand.self, ResumeCommand.self, CancelCommand.self,
      SetCommand.self, HistoryCommand.self, ReportCommand.self,
      IdsCommand.self, InspectCommand.self, DoctorCommand.self, SchemaCommand.self,
      GenerateCommand.self, TrackCommand.self, CleanupCommand.self,
    ]
  )

  static func run() async {
    // If a reader such as head closes the pipe, the command ends without an error. Runs continue.
    signal(SIGPIPE) { _ in _exit(0) }
    if let remedy = remedy(for: Array(CommandLine.arguments.dropFirst())) {
      Self.end(with: ValidationError(remedy))
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
      end(with: error)
    }
  }

  /// Ends the process with an error of the command line, or with the requested help.
  private static func end(with error: any Error) -> Never {
    let (message, label) = (fullMessage(for: error), "Error: ")
    guard message.hasPrefix(label) else { exit(withError: error) }
    // All errors of the program have the same form.
    let parts = message.dropFirst(label.count).split(separator: "\n", maxSplits: 1)
    Terminal.complain(String(parts.first ?? ""))
    if parts.count > 1 { Terminal.say(String(parts[1])) }
    endProcess(exitCode(for: error).rawValue)
  }
}

extension Batch {
  /// The names that other programs use for these commands.
  private static let synonyms = [
    "start": "run", "exec": "run", "execute": "run", "go": "run", "stop": "cancel",
    "kill": "cancel",
    "retry": "retry-failed", "check": "validate", "lint": "validate",
    "preview": "plan", "rehearsal": "rehearse", "simulate": "rehearse", "test": "rehearse",
    "list": "ids", "show": "status", "rollback": "undo", "revert": "undo",
    "tables": "schema", "diagnose": "doctor", "examine": "doctor", "clean": "cleanup",
    "create": "new", "init": "new", "doc": "explain",
  ]

  /// Advice for a command line without a command, or with an option of another program.
  private static func remedy(for arguments: [String]) -> String? {
    let commands = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    if let first = arguments.first, !first.hasPrefix("-"), !commands.contains(first) {
      let meant = synonyms[first] ?? nearestName(to: first, among: commands)
      let advice =
        meant.map { "did you mean batch \($0)?" } ?? remedyListing(commands, kind: "commands")
      return "there is no command \(first.quotedForMessage); \(advice)"
    }
    guard arguments.contains("--dry-run"), arguments.first != "run" else { return nil }
    return
      "only batch run has --dry-run; batch plan JOB shows what would happen, and writes nothing"
  }
}

extension ExitStatus {
  func end() -> Never { exit(rawValue) }
}

/// Within a command, `exit` is a method of the command.
private func endProcess(_ status: Int32) -> Never { exit(status) }
