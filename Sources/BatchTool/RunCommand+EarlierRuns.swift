import ArgumentParser
import BatchIdentifiers
import BatchJobs
import BatchPipeline
import BatchPlatform
import BatchRuns

extension RunCommand {
  /// Finishes an unfinished run of other work with the parameters that it began with.
  func finish(_ job: Job, before options: BatchRun.Options) async throws {
    guard let id = options.runID,
      let run = try await job.history().runs.first(where: { !$0.summary.isSetAside }),
      !run.summary.state.isFinished, run.summary.runID?.hasSameBytes(as: id) != true
    else { return }
    if let name = run.parameters.first(where: { $1 == ParameterValues.secret })?.key {
      throw BatchError(
        .unfinishedRun,
        "the unfinished run \(run.summary.run) needs the secret parameter \(name.quotedForMessage),"
          + " which is not recorded",
        at: self.job.job,
        remedy: "finish it with its own command"
      )
    }
    var first = options
    first.runID = run.summary.runID
    // Only a default is NULL.
    first.parameterTexts = run.parameters.filter { $1 != "NULL" }.sorted { $0.key < $1.key }
      .map { "\($0)=\($1)" }
    do {
      try await arguments.perform(in: self.job.words, first) { options throws(BatchError) in
        BatchRun(job, options: options, handlers: BatchTool.handlers)
      } _: { run, onEvent, answer throws(BatchError) in
        try await run.run(onEvent: onEvent, answer: answer)
      }
    } catch let exit as ExitCode {
      // Failed identifiers do not make it unfinished.
      guard exit.rawValue == ExitStatus.completedWithFailures.rawValue else { throw exit }
    }
  }

  /// Refuses to change rows again that the last run has changed, if somebody can answer.
  func refuseRepetition(of job: Job, _ options: BatchRun.Options) async throws {
    guard !again, !fresh, !joinOnly, options.runID == nil, !arguments.quiet, !arguments.json,
      isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1,
      let column = job.repeatedColumns.first,
      let status = try? await job.status(), status.summary.state.isFinished,
      status.next.name == "begin", status.undo == nil
    else { return }
    let end = status.summary.endedAt.flatMap { Date(iso8601: $0) }
    let age = end.map { " \(Format.seconds(max(0, Date.now.timeIntervalSince($0)))) ago" } ?? ""
    throw BatchError(
      .repeatedRun,
      "the last run of this job completed\(age), and this one would change its rows again:"
        + " what it sets \(column.quotedForMessage) to depends on \(column.quotedForMessage)",
      at: self.job.job,
      remedy: "add --again if you want that, or name the work with --run-id"
    )
  }
}

extension Job {
  /// The columns that an update sets to something that depends on their own values.
  ///
  /// If `where` mentions another column that is set, it is taken to leave out rows that are done.
  fileprivate var repeatedColumns: [String] {
    guard case .update(let update) = action else { return [] }
    let words = source.where.map(Self.words) ?? []
    return update.set.filter { assignment in
      Self.words(of: assignment.expression).contains(assignment.column.lowercased())
        && !update.set.contains {
          $0.column != assignment.column && words.contains($0.column.lowercased())
        }
    }.map(\.column)
  }

  private static func words(of sql: String) -> Set<String> {
    Set(sql.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map { $0.lowercased() })
  }
}

extension BatchError.Code {
  /// A run would change rows again that the last run has changed.
  static let repeatedRun = Self(rawValue: "repeatedRun")
}
