import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct TrackCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "track",
    abstract: "Logs the changes of a table, for source.changes.",
    usage: usage("track <job|database> [--entity <table>] [<options>]"),
    discussion: """
      It makes a table of changes and triggers, which write a row there with each insert, update and \
      delete of a row. Jobs with "changes": "log" export them; what all of them have exported is removed.

        batch track shop.db --entity orders
      """
  )

  @Argument(
    help: "The job file, or the database: a file, or a URL such as postgres://user@host/shop.",
    completion: .file()
  )
  var source: String

  @Option(help: ArgumentHelp("The table of a database.", valueName: "table"))
  var entity: String?

  @Flag(help: "Only show what is there.")
  var status = false

  @Option(help: ArgumentHelp("Keep no more changes for this job.", valueName: "job"))
  var forget: String?

  @Flag(help: "Remove the log and the triggers.")
  var stop = false

  func validate() throws {
    if [status, stop, forget != nil].count(where: { $0 }) > 1 {
      throw ValidationError("Choose one of --status, --forget and --stop.")
    }
  }

  func run() async throws {
    let job = try await job()
    let tracking: Tracking =
      if let forget { .forget(forget) } else if stop { .stop } else if status { .status } else {
        .start
      }
    guard let log = try await tracking(job) else {
      return try Terminal.print("the changes of \(job.source.entity) are not logged any more")
    }
    for name in log.made { try Terminal.print("made      \(name)") }
    try Terminal.print("table     \(log.table), identified by \(log.key.joined(separator: ", "))")
    try Terminal.print(
      "log       \(Format.count(log.count, "change")), from \(log.start) to before \(log.end)"
    )
    for reader in log.readers {
      try Terminal.print(
        "job       \(reader.job): \(Format.count(reader.changes, "change")) from \(reader.position)"
      )
    }
    if !log.made.isEmpty {
      try Terminal.print("cost      each insert, update and delete of a row also writes the log")
    }
    for warning in log.warnings { Terminal.say("warning: \(warning)") }
  }

  private func job() async throws -> Job {
    if Job.isJobFile(.init(source)) {
      guard entity == nil else {
        throw ValidationError("The job names the table: leave out --entity.")
      }
      return try await Job.reading(.init(source))
    }
    guard let entity else { throw ValidationError("Name a table with --entity.") }
    let isURL = Job.DatabaseOptions.Server.isURL(source)
    return Job(
      name: "track",
      database: isURL ? .init(server: .url(source)) : .init(path: .init(source)),
      source: .init(entity: entity),
      action: .export(.init(file: "", format: .ndjson))
    )
  }
}
