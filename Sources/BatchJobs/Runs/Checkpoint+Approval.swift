package import BatchRuns
package import BatchIdentifiers
import SystemPackage

extension Checkpoint {
  /// The plan of the run that too few users have approved; nil if its chunks may begin.
  package func unapprovedPlan(of cause: any RunCause) -> PlannedRun? {
    guard let planned = metadata.planned, approvals(of: cause).count < planned.approvals else {
      return nil
    }
    return planned
  }

  /// The approvals by others than whoever began the run.
  package func approvals(of cause: any RunCause) -> [PlanApproval] {
    guard let planned = metadata.planned else { return [] }
    return ApprovalFiles.all(of: planned, in: cause.files, besides: owner)
  }
}

extension PlannedRun {
  /// Refuses to approve anything but what was planned.
  ///
  /// - Throws: `BatchError` of code `planChanged`.
  package func requireName(_ name: String, at place: String) throws(BatchError) {
    guard !isNamed(by: name) else { return }
    throw BatchError(
      .planChanged,
      "the run's plan is not \(name.quotedForMessage) but \(digest)",
      at: place,
      remedy: "look at it with batch status, and name at least its first 12 digits"
    )
  }
}

extension BatchError {
  package static func noApprovalAwaited(ofJob job: String, at place: String) -> BatchError {
    BatchError(
      .notRunning,
      "no run of job \"\(job)\" awaits approval",
      at: place,
      advice: "\(.start) begins one, if the job has approval"
    )
  }

  package static func ownApproval(at place: String) -> BatchError {
    BatchError(
      .accessDenied,
      "whoever began the run cannot approve it",
      at: place,
      remedy: "have another user approve it"
    )
  }
}

extension RunCause {
  /// The job on a command line.
  package var commandWord: String { (origin?.path?.string ?? name).quotedForShell }
}
