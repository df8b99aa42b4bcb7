extension RunSummary {
  /// Why a run has stopped that too few users have approved.
  package static func awaitingApproval(_ planned: PlannedRun) -> String {
    "the plan \(planned.short) awaits approval"
  }

  /// Whether the run has stopped because too few users have approved its plan.
  package var awaitsApproval: Bool {
    state == .stopped && stopReason.map { $0.hasSuffix(" awaits approval") } ?? false
  }
}
