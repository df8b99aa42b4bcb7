import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What every command about a job takes.
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
        "this is a checkpoint or a list of identifiers, and no job file",
        at: job,
        remedy: "name the job file; a run by objects is carried out by its program"
      )
    }
    return try await Job.reading(path)
  }

  /// Reads the job file, or the checkpoint that a program's own run has left, for a command that knows databases of SQLite
  /// only.
  func loadRun(for command: String) throws(BatchError) -> Job {
    try Job(ofRunNamed: job, for: command)
  }

  /// The values of the job's parameters, in a run that begins now.
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
  /// What stands for standard input on a command line.
  static let standardInputName = "-"

  /// The job of an argument: that of a job file, of a checkpoint that a program's own run has left, or on
  /// standard input.
  init(ofRunNamed argument: String) throws(BatchError) {
    guard argument == Self.standardInputName else {
      self = try Job(ofRunAt: FilePath(argument))
      return
    }
    Self.announceReading()
    self = try Job.ofStandardInput()
  }

  /// Says what a command waits for that would else seem to hang.
  fileprivate static func announceReading() {
    guard isatty(STDIN_FILENO) == 1 else { return }
    Terminal.say("reading the job from standard input; Ctrl-D ends it")
  }

  /// The job of a run, for a command that knows runs by their files.
  ///
  /// - Throws: `BatchError` as ``init(ofRunNamed:)`` does, and `invalidJob` for a job whose runs a server keeps.
  init(ofRecordNamed argument: String, for command: String) throws(BatchError) {
    try self.init(ofRunNamed: argument)
    try requireRecord(for: command)
  }

  /// The job of a run, for a command that knows databases of SQLite only.
  ///
  /// - Throws: `BatchError` as ``init(ofRunNamed:)`` does, and `invalidJob` for a job on PostgreSQL.
  init(ofRunNamed argument: String, for command: String) throws(BatchError) {
    try self.init(ofRunNamed: argument)
    try requireFile(for: command)
  }
}
