import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct PauseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Pauses the live run until batch resume."
  )

  @OptionGroup var job: LiveJob

  func run() async throws {
    try await job.ask("pauses after its current chunks, until batch resume") { $0.pause() }
  }
}

struct ResumeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Continues a paused run, also after its canary."
  )

  @OptionGroup var job: LiveJob

  func run() async throws { try await job.ask("goes on") { $0.resume() } }
}

struct CancelCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel",
    abstract: "Stops the live run; batch run resumes it."
  )

  @OptionGroup var job: LiveJob

  func run() async throws {
    try await job.ask("stops after its current chunks; \(job.command) resumes it") { $0.cancel() }
  }
}

struct SetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Changes settings of the live run, and shows them.",
    discussion: """
      The settings are \(RunPolicy.liveSettings.joined(separator: ", ")); none removes one.

        batch set job.json chunk.size=500 throttle.identifiersPerSecond=2000
      """
  )

  @OptionGroup var job: LiveJob

  @Argument(help: "Settings, by their path in the job file: name=value.")
  var settings: [String]

  func run() async throws {
    var changes: [String: String] = [:]
    for setting in settings {
      let parts = setting.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else {
        throw ValidationError("\"\(setting)\" is not of the form name=value.")
      }
      changes[String(parts[0])] = String(parts[1])
    }
    let records = try job.load()
    if records.cause.database.server != nil, changes["throttle.maximumWAL"] != nil {
      throw BatchError(
        .invalidJob,
        "throttle.maximumWAL bounds the log of an SQLite file",
        remedy: "leave it out"
      )
    }
    // A typo is told first, whether a run is alive or not.
    _ = try records.cause.policy.adjusted(by: changes)
    let control = try await records.request { [changes] control in control.set(changes) }
    let policy = try records.cause.policy.adjusted(by: control.settings)
    let isShared = records.cause.database.server != nil
    let shown = policy.liveValues.filter { !isShared || $0.name != "throttle.maximumWAL" }
    let ofJob = Dictionary(uniqueKeysWithValues: records.cause.policy.liveValues.map { $0 })
    let standard = Dictionary(uniqueKeysWithValues: RunPolicy().liveValues.map { $0 })
    let lines = shown.map { name, value in
      let origin =
        if let origin = control.origins[name] {
          "set by \(origin.words)"
        } else if value != ofJob[name] {
          "because of what was set"
        } else {
          value == standard[name] ? "by default" : "by the job"
        }
      return ("\(name):", "\(value), \(origin)")
    }
    let text = TextLayout.labelled(lines, width: Terminal.outputColumns, indent: 0, gap: 1)
    try Terminal.print(text.joined(separator: "\n"))
  }
}

struct LiveJob: ParsableArguments {
  @Argument(
    help: "The job file (- for standard input), or the checkpoint of a program's own run.",
    completion: .file(extensions: ["json", "batch"])
  )
  var job: String

  func load() throws -> any RunRecords { try runRecords(named: job) }

  /// The command whose run it is.
  var command: String {
    (try? load().cause.actionName) == "undo" ? "batch undo" : "batch run"
  }

  /// Requests a change from the run, which reads the request after its current chunk, and says what
  /// the run does then.
  func ask(
    _ effect: String,
    _ change: @escaping @Sendable (inout RunControl) -> Void
  ) async throws {
    let records = try load()
    _ = try await records.request(change)
    Terminal.say("the run of job \(records.cause.name.quotedForMessage) \(effect)")
  }
}

extension RunControl.Origin {
  /// Who, from where, and when.
  var words: String { "\(user) on \(host) at \(at)" }
}
