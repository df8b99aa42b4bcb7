import ArgumentParser
import BatchEngine
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows how the last run of a job stands, live or finished."
  )

  @Argument(
    help: "The job file, or the checkpoint of a program's own run.",
    completion: .file(extensions: ["json", "batch"])
  )
  var job: String

  @OptionGroup var runID: RunIDArgument

  @Flag(help: "Print the summary as JSON.")
  var json = false

  @Flag(help: "Show it again every second until the run ends.")
  var watch = false

  func run() async throws {
    let job = try Job(ofRunAt: .init(job))
    var options = BatchRun.Options()
    options.runID = runID.value
    while true {
      let status = try await RunStatus(
        of: job,
        options: options,
        handlers: BatchTool.handlers
      )
      if json {
        try Terminal.printJSON(StatusLine(status: status), pretty: !watch)
      } else if watch, status.process != nil {
        try Terminal.print(ProgressPrinter.line(status.summary))
      } else {
        try SummaryText.print(status.summary)
        if let process = status.process { try Terminal.print("  process: \(process)") }
        let command =
          switch job.action {
          case .contexts: "its program"
          case .undo: "batch undo"
          default: "batch run"
          }
        try Terminal.print("  \(command): \(status.next.words)")
      }
      guard watch, status.process != nil else { return }
      try await Task.sleep(for: .seconds(1))
    }
  }
}

/// A summary with what comes next beside its fields.
private struct StatusLine: Encodable {
  let status: RunStatus

  private enum CodingKeys: CodingKey { case next, nextWords }

  func encode(to encoder: any Encoder) throws {
    try status.summary.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(status.next.name, forKey: .next)
    try container.encode(status.next.words, forKey: .nextWords)
  }
}
