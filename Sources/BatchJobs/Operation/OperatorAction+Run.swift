package import BatchRuns

extension [OperatorAction] {
  /// All of a run: how it began, these, and its undos, in the order of their times.
  package func following(_ run: RunMetadata, _ undo: CompletedUndo?) -> [OperatorAction] {
    let began = run.invocation.map { OperatorAction(.began, at: run.startedAt, $0) }
    return (began.map { [$0] } ?? [])
      + (self + (undo?.actions ?? [])).sorted { $0.at < $1.at }
  }
}

extension Checkpoint {
  /// What people have done to the run, with approvals that no process has recorded yet.
  package func actions(
    of cause: some RunCause,
    _ undo: CompletedUndo? = nil
  ) -> [OperatorAction] {
    var actions = progress.actions ?? []
    if path == cause.checkpointPath {
      actions.note(approvals(of: cause).map { OperatorAction($0) })
    }
    return actions.following(metadata, undo)
  }
}
