import ArgumentParser
import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import SystemPackage

struct InspectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Shows and checks a checkpoint or identifier file."
  )

  @Argument(
    help: "The file, or the folder of a job's history.",
    completion: .file(extensions: ["batch", "ids"])
  )
  var file: String

  @Flag(help: "Print it as JSON.")
  var json = false

  func run() async throws {
    if FileSystem.kind(of: FilePath(file)) == .folder { return try inspectFolder() }
    let inspection = try FileInspection(of: FilePath(file))
    let undo = await UndoableRun(ofCheckpoint: FilePath(file))
    if json {
      return try Terminal.printJSON(
        InspectionLine(inspection: inspection, undo: undo),
        pretty: true
      )
    }
    var lines = [
      ("file", "\(file), version \(inspection.version)"),
      ("store", inspection.store),
      ("entity", inspection.entity),
      ("identifiers", inspection.count.grouped),
      ("order", inspection.isSorted ? "by key" : "as selected"),
      ("size", Format.bytes(inspection.fileBytes)),
      (
        "list",
        "\(Format.bytes(inspection.listBytes)),"
          + " \(Format.decimal(inspection.bitsPerIdentifier)) bits per identifier"
      ),
    ]
    if let run = inspection.run {
      lines += [
        ("job", run.job), ("run", run.run), ("started", run.startedAt), ("state", run.state),
        (
          "done",
          "\(run.done.grouped) in \(Format.count(run.ranges, "range")), according to the file"
        ),
      ]
      if let undo { lines.append(("undo", Format.undo(undo))) }
      if !run.failed.isEmpty { lines.append(("failed", run.failed.count.grouped)) }
      // The first few failures show the problem; --json and `batch ids --outcome failed` print all.
      for failed in run.failed.prefix(10) {
        lines.append(("", "\(failed.identifier): \(failed.failure.message)"))
      }
    }
    lines.append(("checks", "every block, header and record is intact"))
    let width = lines.map(\.0.count).max() ?? 0
    for (name, value) in lines {
      try Terminal.print("\(name)\(String(repeating: " ", count: width - name.count))  \(value)")
    }
  }

  /// Checks each record of a history, and adds up their sizes.
  private func inspectFolder() throws {
    let entries = RunHistory(folder: FilePath(file)).entries
    let inspections = entries.map { entry in
      Result { () throws(BatchError) in try FileInspection(of: entry.path) }
    }
    if json {
      try Terminal.printJSON(inspections.compactMap { try? $0.get() }, pretty: true)
    } else {
      for (entry, inspection) in zip(entries, inspections) {
        let name = entry.path.lastComponent?.string ?? ""
        switch inspection {
        case .success(let inspection):
          try Terminal.print(
            "\(name)  \(Format.count(inspection.count, "identifier")),"
              + " \(Format.bytes(inspection.fileBytes))"
          )
        case .failure(let error): try Terminal.print("\(name)  \(error.message)")
        }
      }
      let bytes = entries.reduce(0) { $0 + Int($1.byteCount) }
      try Terminal.print("\(Format.count(entries.count, "record")), \(Format.bytes(bytes))")
    }
    // All records are checked before a damaged one fails the command.
    for inspection in inspections { _ = try inspection.get() }
  }
}

/// The JSON of a file's content, with the undo records of its run in the database.
private struct InspectionLine: Encodable {
  let inspection: FileInspection
  let undo: UndoableRun?

  private enum CodingKeys: CodingKey { case undo }

  func encode(to encoder: any Encoder) throws {
    try inspection.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(undo, forKey: .undo)
  }
}
