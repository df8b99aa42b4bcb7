import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct CleanupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cleanup",
    abstract: "Removes what past runs left behind.",
    discussion: """
      It removes checkpoints that --fresh set aside, with their unfinished exports, and the ledgers \
      in the database of those runs and of finished ones. It keeps what `batch run` can resume and \
      `batch retry-failed` can retry, and, without --history, the records that `batch history` shows.
      """
  )

  @Argument(
    help: "The job file (- for standard input), or the checkpoint of a program's own run.",
    completion: .file(extensions: ["json", "batch"])
  )
  var job: String

  @Flag(help: "Also remove the records of earlier runs; that of the last run stays.")
  var history = false

  func run() async throws {
    let cleanup = try await runRecords(named: job).cleanUp(removingHistory: history)
    for file in cleanup.files { try Terminal.print("removed \(file)") }
    try Terminal.print("removed \(Format.count(cleanup.runCount, "run")) from the database")
    for undo in cleanup.undoable {
      try Terminal.print("kept run \(undo.run) for batch undo: \(Format.undo(undo))")
    }
    if cleanup.historyBytes > 0 {
      try Terminal.print(
        "kept \(Format.bytes(Int(cleanup.historyBytes))) of records of earlier runs, which --history removes"
      )
    }
  }
}
