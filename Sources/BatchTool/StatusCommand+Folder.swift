import ArgumentParser
import BatchJobs
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchRuns
import SystemPackage

/// A job file of a folder, and how its last run stands.
private struct FolderEntry: Encodable {
  let file: String
  var status: RunStatus?
  var error: String?
}

extension StatusCommand {
  /// Shows the last run of each job of a folder, and ends with the worst status of a check.
  func runOfFolder(_ judge: JobCheck?) async throws {
    if watch || recorded.run != nil || runID.runID != nil {
      throw ValidationError("--watch, --run and --run-id are about one job: name its file.")
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: job)
      .filter { $0.hasSuffix(".json") }.sorted()
    var worst = ExitStatus.completed
    var entries: [FolderEntry] = []
    var rows: [(label: String, text: String)] = []
    for name in names {
      var entry = FolderEntry(file: name)
      var words: String
      var refusal: String?
      do throws(BatchError) {
        let records = try FilePath(job).appending(name).records()
        let status: RunStatus
        do throws(BatchError) {
          status = try await records.status(BatchRun.Options(), BatchTool.handlers)
        } catch {
          let next = await records.nextStep(BatchRun.Options(), BatchTool.handlers)
          if error.isAboutMissingRun, next.name == "refuse" { refusal = next.words }
          throw error
        }
        entry.status = status
        words = SummaryText.line(status.summary)
        if judge == nil, let undo = status.undo { words += "; \(undo.words(ofRows: nil))" }
        // Such as an unfinished undo, which the last run does not show.
        if !status.isLive, status.next.name == "refuse" {
          words += "; batch run \(status.next.words.onOneLine)"
        }
        if let (exit, reason) = try await judge?.result(for: status, in: records) {
          worst = Self.worse(worst, exit)
          if let reason { words += "; \(reason)" }
        }
      } catch {
        let text = error.inWordsOfJobs.description
        entry.error = text
        words = error.isAboutMissingRun ? "no run yet" : text.onOneLine
        if let refusal { words += "; batch run \(refusal.onOneLine)" }
        if judge != nil { worst = Self.worse(worst, .refused) }
      }
      entries.append(entry)
      rows.append(("\(name):", words))
    }
    if json {
      try Terminal.printJSON(entries, pretty: true)
    } else if rows.isEmpty {
      try Terminal.print("there is no job file in \(job)")
      if judge != nil { worst = .refused }
    } else {
      let lines = TextLayout.labelled(rows, width: Terminal.outputColumns, gap: 1)
      try Terminal.print(lines.joined(separator: "\n"))
    }
    if worst != .completed { throw ExitCode(worst.rawValue) }
  }

  /// The status that needs somebody sooner.
  private static func worse(_ first: ExitStatus, _ second: ExitStatus) -> ExitStatus {
    first.urgency < second.urgency ? second : first
  }
}

extension ExitStatus {
  /// How soon it needs somebody, compared to others.
  fileprivate var urgency: Int {
    switch self {
    case .completed: 0
    case .overdue: 1
    case .completedWithFailures: 2
    case .alreadyRunning, .undelivered, .stopped, .awaitingApproval: 3
    case .refused: 4
    case .failed: 5
    }
  }
}
