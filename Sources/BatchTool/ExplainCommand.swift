import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Explains a key of the job file.",
    discussion: """
      Without a key, it lists all keys; for a section, also the keys below it. The text is that \
      of Documentation/JobFile.md.

        batch explain throttle.maximumWAL
        batch explain throttle
        batch explain --schema > job.schema.json   for editors
      """
  )

  @Argument(
    help: "The key, such as source.where or parameters.NAME.type.",
    completion: .custom { _, _, _ in JobPage.embedded.keys.map(\.path) }
  )
  var key: String?

  @Flag(help: "Print the JSON schema of job files instead.")
  var schema = false

  func validate() throws {
    if schema, key != nil { throw ValidationError("--schema takes no key.") }
  }

  func run() throws {
    if schema { return try Terminal.print(bytes: PackageResources.job_schema_json) }
    let page = JobPage.embedded
    guard let key else {
      return try Terminal.print(page.list(width: Terminal.outputColumns).joined(separator: "\n"))
    }
    let width = Terminal.outputColumns ?? TextLayout.standardWidth
    guard let path = page.path(key) else {
      let advice =
        page.nearestPath(to: key).map { "did you mean \($0.quotedForMessage)?" }
        ?? "batch explain lists all keys"
      throw wrongUsage("there is no key \(key.quotedForMessage); \(advice)")
    }
    try Terminal.print(page.lines(about: path, width: width).joined(separator: "\n"))
  }
}
