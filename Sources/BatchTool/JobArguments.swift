import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import SystemPackage

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

  /// The job file as a word of a command line; nil for standard input, which is read once.
  var words: String? { job == Job.standardInputName ? nil : job.quotedForShell }

  /// What is given for a run.
  var options: BatchRun.Options {
    var options = BatchRun.Options()
    options.parameterTexts = parameters
    return options
  }
}

extension Job {
  static let standardInputName = "-"

  /// Tells the user that the command waits for input, since it would seem to hang.
  fileprivate static func announceReading() {
    guard isatty(STDIN_FILENO) == 1 else { return }
    Terminal.say("reading the job from standard input; end it with Ctrl-D")
  }
}

/// The records for a job file, the checkpoint of a program's own run, or standard input.
func runRecords(named argument: String) throws(BatchError) -> any RunRecords {
  guard argument == Job.standardInputName else { return try FilePath(argument).records() }
  Job.announceReading()
  return try Job.ofStandardInput().records
}

/// The job for an argument; throws `invalidJob` for work without a job file.
func requireJob(named argument: String) throws(BatchError) -> Job {
  guard let job = try runRecords(named: argument).cause as? Job else {
    throw BatchError(
      .invalidJob,
      "a run by objects, or one that undoes another, does not declare what it changes",
      at: argument,
      remedy: "name a job file"
    )
  }
  return job
}
