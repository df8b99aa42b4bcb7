import BatchJobs
import BatchIdentifiers
import BatchRuns
import Testing

/// How a summary tells success from any other end.
@Suite struct RunSummaryTests {
  private func summary(_ state: RunState, failed: Int = 0) -> RunSummary {
    var summary = RunSummary(notBegun: "reprice", path: "reprice.batch")
    summary.state = state
    summary.total = 2_500
    summary.outcomes.failed = failed
    return summary
  }

  private func code(_ summary: RunSummary, allowingFailures: Bool = false) -> BatchError.Code? {
    do throws(BatchError) {
      _ = try summary.get(allowingFailures: allowingFailures)
      return nil
    } catch { return error.code }
  }

  @Test func `a run returns its summary only if it has completed`() {
    for state in [RunState.running, .throttled, .paused, .stopped, .failed] {
      #expect(code(summary(state)) == .interrupted, "\(state)")
      #expect(code(summary(state), allowingFailures: true) == .interrupted, "\(state)")
    }
    #expect(code(summary(.completed)) == nil)
    let failed = summary(.completedWithFailures, failed: 3)
    #expect(code(failed) == .identifiersFailed)
    #expect(code(failed, allowingFailures: true) == nil)
  }

  @Test func `a failed run throws the error of its failure or of its acknowledgement unchanged`() {
    var failed = summary(.failed)
    failed.failure = BatchError(.constraint, "CHECK constraint failed")
    #expect(code(failed) == .constraint)
    var untold = summary(.completed)
    untold.unacknowledged = BatchError(.outputFailed, "the disk is full")
    #expect(code(untold) == .outputFailed)
  }

  @Test func `the error of a stopped run states its progress and the reason`() throws {
    var stopped = summary(.stopped)
    stopped.outcomes.succeeded = 1_200
    stopped.stopReason = "limits.time"
    let error = #expect(throws: BatchError.self) { try stopped.get() }
    let words = try #require(error?.description)
    #expect(words.contains("1,200 of 2,500 identifiers done: limits.time"), "\(words)")
    #expect(words.contains("call run() again"), "\(words)")
  }
}
