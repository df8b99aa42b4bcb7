package import BatchIdentifiers

/// What a record has for the process that asks for a run.
package enum RunEntry<Part: RunPart> {
  /// Its part of an open run.
  case part(Part)
  /// Nothing yet: another process was faster, or something was restored, so that it must look again.
  case again
  /// The end of a run, of which nobody may know.
  case end(Part.End)
  /// A result, which needs no acknowledgement.
  case result(RunSummary)
}

/// Where the runs of some work are recorded: files, or tables that processes share.
package protocol RunRecord {
  /// A run as it is recorded.
  associatedtype Run
  associatedtype Part: RunPart

  /// What there is; writes nothing.
  func find(_ request: RunRequest) async throws(BatchError) -> FoundRuns<Run>

  /// Selects identifiers and begins a run, which replaces others; all of them are unchanged if it throws.
  func begin(
    _ request: RunRequest,
    replacing runs: [FoundRun<Run>]
  ) async throws(BatchError) -> RunEntry<Part>

  /// Resumes a run, takes part in it, restores its lost file, or reopens it for what has failed.
  func join(
    _ run: FoundRun<Run>,
    retryingFailures: Bool
  ) async throws(BatchError) -> RunEntry<Part>

  /// The end of a finished run, whose rows nobody touches again.
  func end(of run: FoundRun<Run>) async throws(BatchError) -> Part.End

  /// The result of work that was done before.
  func result(of run: FoundRun<Run>) async throws(BatchError) -> RunSummary

  /// An error of entering a run, as its user understands it.
  func explained(_ error: BatchError) -> BatchError

  /// Whether another try to enter may succeed after an error.
  func isTransient(_ error: BatchError) -> Bool

  /// Waits before another try to enter.
  func wait(_ time: Duration) async throws(BatchError)

  /// Removes what only a process at work leaves, before the last write.
  func close() async
}

extension RunRecord {
  package func explained(_ error: BatchError) -> BatchError { error }

  package func isTransient(_ error: BatchError) -> Bool { error.isTransient }
}
