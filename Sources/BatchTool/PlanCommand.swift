import ArgumentParser
import BatchPipeline

struct PlanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Shows what a job would do; writes nothing.",
    usage: usage("plan <job> [<options>]"),
    discussion: """
      Counts the matching rows and shows the SQL, SQLite's query plan, warnings, a rough time and \
      the first rows before and after. The handler or command of a transform is not called, since it \
      may do more than compute: its rows are shown before only, and its time is unknown.
      """
  )

  @OptionGroup var arguments: JobArguments

  @Option(help: "Identifiers in a chunk, instead of the job's number.")
  var chunkSize: Int?

  @OptionGroup var runID: RunIDArgument

  @Flag(help: "Print the plan as JSON.")
  var json = false

  func validate() throws {
    if let chunkSize, !(1...RunPolicy.chunkSizeLimit).contains(chunkSize) {
      throw ValidationError("--chunk-size must be from 1 to \(RunPolicy.chunkSizeLimit).")
    }
  }

  func run() async throws {
    try await PlanText.print(of: arguments, chunkSize: chunkSize, runID: runID.value, json: json)
  }
}
