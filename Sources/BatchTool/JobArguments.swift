import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import SystemPackage

/// The arguments of every command about a job.
struct JobArguments: ParsableArguments {
  @Argument(help: "The job file, or - for standard input.", completion: .file(extensions: ["json"]))
  var job: String

  @Option(
    name: .customLong("param"),
    help: ArgumentHelp(
      "A value for a parameter of the job; may be repeated.",
      valueName: "name=value"
    )
  )
  var parameters: [String] = []

  /// Reads and checks the job file.
  func load() async throws(BatchError) -> Job {
    if job == Job.standardInputName {
      Job.announceReading()
      return try await Job.readingStandardInput()
    }
    let path = FilePath(job)
    if !Job.isJobFile(path), (try? FileInspection(of: path)) != nil {
      throw BatchError(
        .invalidJob,
        "this is a checkpoint or a list of identifiers, not a job file",
        at: job,
        remedy: "name the job file; only its program can resume a run by objects"
      )
    }
    return try await Job.reading(path)
  }

  /// Reads the job file, or the checkpoint of a program's own run, for a command that works only on SQLite.
  func loadRun(for command: String) throws(BatchError) -> Job {
    try Job(ofRunNamed: job, for: command)
  }

  /// The values of the job's parameters in a run that starts now.
  func values(for job: Job) throws(BatchError) -> ParameterValues {
    try ParameterValues(
      arguments: parameters,
      declarations: job.parameters,
      runStartedAt: currentTimestamp(),
      runID: "00000000-0000-0000-0000-000000000000"
    )
  }

  /// Resolves the job against its database.
  func plan(of job: Job) async throws(BatchError) -> JobPlan {
    let values = try values(for: job)
    let plan = try await JobPlan(job, parameters: values, handlers: BatchTool.handlers)
    try job.refuseOccupiedOutput()
    return plan
  }
}

extension Job {
  /// The argument that stands for standard input.
  static let standardInputName = "-"

  /// Reads the job that an argument names: a job file, the checkpoint of a program's own run, or standard
  /// input.
  init(ofRunNamed argument: String) throws(BatchError) {
    guard argument == Self.standardInputName else {
      self = try Job(ofRunAt: FilePath(argument))
      return
    }
    Self.announceReading()
    self = try Job.ofStandardInput()
  }

  /// Says what the command waits for: it would seem to hang.
  fileprivate static func announceReading() {
    guard isatty(STDIN_FILENO) == 1 else { return }
    Terminal.say("reading the job from standard input; end it with Ctrl-D")
  }

  /// Reads the job of a run, for a command that finds runs by their files.
  ///
  /// - Throws: `BatchError` as ``init(ofRunNamed:)`` does, and `invalidJob` for a job whose runs a server keeps.
  init(ofRecordNamed argument: String, for command: String) throws(BatchError) {
    try self.init(ofRunNamed: argument)
    try requireRecord(for: command)
  }

  /// Reads the job of a run, for a command that works only on SQLite.
  ///
  /// - Throws: `BatchError` as ``init(ofRunNamed:)`` does, and `invalidJob` for a job on PostgreSQL.
  init(ofRunNamed argument: String, for command: String) throws(BatchError) {
    try self.init(ofRunNamed: argument)
    try requireFile(for: command)
  }
}
