import ArgumentParser
import BatchPipeline
import SystemPackage

struct ReportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Writes the report of a recorded run again.",
    discussion: "batch report job.json --run 8CF1CAB5 --output run.html"
  )

  @Argument(
    help: "The job file (- for standard input), or the checkpoint of a program's own run.",
    completion: .file(extensions: ["json", "batch"])
  )
  var job: String

  @OptionGroup var recorded: RecordedRunArgument

  @Option(help: "The file, which ends in .html or .json; replaces an earlier report.")
  var output: String

  func validate() throws {
    guard ["html", "json"].contains(FilePath(output).extension) else {
      throw ValidationError("--output must end in .html or .json.")
    }
  }

  func run() async throws {
    let records = try runRecords(named: job)
    try records.cause.requireSupport()
    try await records.report(ofRun: recorded.run).write(
      to: Job.Report(path: FilePath(output)),
      permissions: records.cause.files.permissions
    )
  }
}
