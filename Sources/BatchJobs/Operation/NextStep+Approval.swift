package import BatchRuns

extension NextStep {
  /// The step of a run that waits for approvals.
  package init(awaiting planned: PlannedRun, _ given: Int, _ job: String) {
    self.init(
      "awaitApproval",
      "waits for approval of the plan \(planned.short), which \(given) of \(planned.approvals) users have approved:"
        + " batch approve \(job) --plan \(planned.short)"
    )
  }
}
