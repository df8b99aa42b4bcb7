import SystemPackage
package import BatchRuns
package import BatchIdentifiers

extension RunCause {
  /// Notifies the hook of a run that was refused, failed to begin, or was stopped before it began.
  package func tellRefusal(
    _ error: BatchError,
    endingWith status: ExitStatus? = nil,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async {
    let event: Job.Hooks.Event = error.code == .interrupted ? .onStop : .onRefuse
    // The problem may concern another program or a parameter.
    let parameters = ParameterValues()
    guard let hooks = try? RunHooks(self, parameters: parameters, for: [event]) else { return }
    let hasFile = keepsRecord && sharedServer == nil
    let checkpoint = hasFile ? try? Checkpoint(of: self) : nil
    var summary = checkpoint.map { RunSummary($0.metadata, $0.progress, checkpoint: $0) }
    // The reason belongs to the previous run.
    if event == .onRefuse { summary?.stopReason = nil }
    await hooks.run(
      event,
      summary
        ?? RunSummary(
          notBegun: name,
          path: sharedServer == nil ? checkpointPath.string : ""
        ),
      telling: [
        "BATCH_STATE": event == .onStop ? RunState.stopped.rawValue : "refused",
        "BATCH_EXIT_STATUS": String((status ?? ExitStatus(of: error)).rawValue),
        "BATCH_ERROR": error.inWordsOfJobs.description.replacing("\0", with: " "),
      ]
    )
    for message in hooks.takeMessages() { onEvent(.message(message)) }
  }
}
