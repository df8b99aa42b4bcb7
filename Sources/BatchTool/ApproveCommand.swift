import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct ApproveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "approve",
    abstract: "Approves the plan of a run that awaits that.",
    usage: usage("approve <job> --plan <digest>"),
    discussion: """
      A job with "approval" records its plan and waits before the first row. Another user than the one \
      who began the run approves it; batch run then goes on.

        batch approve job.json --plan 3f2a9c0d4e5b
      """
  )

  @Argument(help: "The job file, or - for standard input.", completion: .file(extensions: ["json"]))
  var job: String

  @Option(
    help: ArgumentHelp(
      "The digest of the plan, or its first 12 digits; batch status shows it.",
      valueName: "digest"
    )
  )
  var plan: String

  func run() async throws {
    let (planned, approvals) = try await runRecords(named: job).approve(plan)
    let missing = planned.approvals - approvals.count
    try Terminal.print(
      "approved the plan \(planned.short): \(approvals.count) of \(planned.approvals)"
        + (missing > 0 ? ", \(missing) more to go" : "; batch run then goes on with it")
    )
  }
}
