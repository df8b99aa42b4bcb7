package import BatchIdentifiers

package enum RunEntry<Part: RunPart> {
  /// This process's part of an open run.
  case part(Part)
  /// Another process was faster, or something was restored, so the records must be read again.
  case again
  /// The end of a run, which may not have been reported yet.
  case end(Part.End)
  /// A result that needs no acknowledgement.
  case result(RunSummary)
}

/// Where runs are recorded: files, or tables that processes share.
package protocol RunRecord {
  associatedtype Run
  associatedtype Part: RunPart

  /// Finds the recorded runs, without writing anything.
  func find(_ request: RunRequest) async throws(BatchError) -> FoundRuns<Run>

  /// Selects identifiers and begins a run that replaces others; if it throws, all of them are
  /// unchanged.
  func begin(
    _ request: RunRequest,
    replacing runs: [FoundRun<Run>]
  ) async throws(BatchError) -> RunEntry<Part>

  /// Resumes a run, takes part in it, restores its lost file, or reopens it to retry its failures.
  func join(
    _ run: FoundRun<Run>,
    retryingFailures: Bool
  ) async throws(BatchError) -> RunEntry<Part>

  /// The end of a finished run, whose rows are not touched again.
  func end(of run: FoundRun<Run>) async throws(BatchError) -> Part.End

  /// The result of work that was done before.
  func result(of run: FoundRun<Run>) async throws(BatchError) -> RunSummary

  /// Rewords an error from entering a run for the user.
  func explained(_ error: BatchError) -> BatchError

  /// Whether entering may succeed if retried after this error.
  func isTransient(_ error: BatchError) -> Bool

  /// Waits before entering is retried.
  func wait(_ time: Duration) async throws(BatchError)

  /// Removes everything that exists only while a process works, before the last write.
  func close() async
}

extension BatchError {
  /// What to tell if the work of a run ID was done by another job, or with other parameters; nil for any other error.
  package var wordsOfOtherWork: String? {
    code == .otherRun ? "warning: the work of this run ID is done, but \(message)" : nil
  }
}

extension RunRecord {
  package func explained(_ error: BatchError) -> BatchError { error }

  package func isTransient(_ error: BatchError) -> Bool { error.isTransient }
}
