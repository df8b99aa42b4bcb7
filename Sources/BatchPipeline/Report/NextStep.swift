import BatchIdentifiers
import BatchStore

/// What `batch run` would do now, by what is on the disk.
public struct NextStep: Sendable, Encodable {
  /// In a word: `begin`, `resume`, `acknowledge`, `acknowledgeAndBegin`, `nothing`, or `refuse`.
  public let name: String
  /// In a clause, with the reason where the run would be refused.
  public let words: String

  /// Decides as a run would; writes nothing.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - runID: The identifier of the work that would be asked for.
  public init(of job: Job, runID: String? = nil) async {
    if let process = RunLock.holder(ofCheckpoint: job.checkpointPath) {
      name = "refuse"
      words = "refuses: another run of this job is alive (process \(process))"
      return
    }
    do throws(BatchError) {
      var options = BatchRun.Options()
      options.runID = runID
      try options.check()
      let findings = try await RunDecision.Findings(of: job, options, isThorough: true)
      if let alive = findings.stored.first(where: { $0.process != nil }) { throw alive.isAlive }
      let decision = try RunDecision(findings)
      name = decision.name
      words = decision.words
    } catch {
      name = "refuse"
      words = "refuses: \(error)"
    }
  }
}
