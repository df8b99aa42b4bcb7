import ArgumentParser
import BatchJobs
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchRuns
import BatchSQLite

/// What monitoring asks about a job: how its last run stands, and when it last completed.
struct JobCheck {
  /// The longest time since the job last completed; nil for any.
  private let limit: Duration?

  /// Reads the limit of a command line.
  init(within text: String?) throws {
    do throws(BatchError) {
      limit = try text.map { text throws(BatchError) in try Duration(parsing: text) }
    } catch {
      throw ValidationError("--within: \(error.message).")
    }
  }

  /// Ends the command unless all is well, and says why.
  func exit(for status: RunStatus, in records: any RunRecords) async throws {
    let (exit, reason) = try await result(for: status, in: records)
    if let reason { Terminal.complain(reason) }
    if exit != .completed { throw ExitCode(exit.rawValue) }
  }

  /// The exit status, and what the status does not show.
  func result(
    for status: RunStatus,
    in records: any RunRecords
  ) async throws(BatchError) -> (ExitStatus, reason: String?) {
    let exit = status.isLive ? .completed : ExitStatus(of: status.summary)
    if exit == .completed, let undo = status.undo {
      return (.stopped, "\(records.cause.name): last run: \(undo.words(ofRows: nil))")
    }
    guard exit == .completed, let limit else { return (exit, nil) }
    let name = records.cause.name
    guard let end = try await lastSuccess(status, in: records) else {
      return (.overdue, "\(name) has not completed yet")
    }
    let age = max(0, Date.now.timeIntervalSince(end))
    guard .seconds(age) > limit else { return (.completed, nil) }
    return (
      .overdue, "\(name) last completed \(Format.seconds(age)) ago, longer than \(limit.shown)"
    )
  }

  private func lastSuccess(
    _ status: RunStatus,
    in records: any RunRecords
  ) async throws(BatchError) -> Date? {
    var ends = [status.summary]
    if status.summary.state != .completed {
      ends = try await records.history().runs.filter { $0.undo == nil }.map(\.summary)
    }
    return ends.lazy.filter { $0.state == .completed }
      .compactMap { $0.endedAt.flatMap { Date(iso8601: $0) } }.max()
  }
}
