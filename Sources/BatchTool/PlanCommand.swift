import ArgumentParser
import BatchPipeline

struct PlanCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Shows what a job would do; writes nothing.",
    usage: usage("plan <job> [<options>]"),
    discussion: """
      It counts the matching rows and shows the SQL, the database's query plan, warnings, a rough time and \
      the first rows before and after. It does not call the handler or command of a transform, which \
      may do more than compute: of these rows it shows only the values before, and no time.
      """
  )

  @OptionGroup var arguments: JobArguments

  @Option(help: "Identifiers per chunk; overrides the job.")
  var chunkSize: Int?

  @OptionGroup var runID: RunIDArgument

  @Flag(help: "Also select all rows, for the digest of the plan that batch run --plan takes.")
  var digest = false

  @Flag(help: "Print the plan as JSON.")
  var json = false

  func validate() throws {
    if let chunkSize, !(1...RunPolicy.chunkSizeLimit).contains(chunkSize) {
      throw ValidationError("--chunk-size must be from 1 to \(RunPolicy.chunkSizeLimit).")
    }
  }

  func run() async throws {
    var options = arguments.options
    options.chunkSize = chunkSize
    options.runID = runID.value
    try await PlanText.print(of: arguments.load(), options, digest: digest, json: json)
  }
}
