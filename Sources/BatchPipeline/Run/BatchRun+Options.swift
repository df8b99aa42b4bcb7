import BatchRuns
import BatchIdentifiers

extension BatchRun.Options {
  /// What is asked for.
  var request: RunRequest { RunRequest(runID: runID, fresh: fresh, joinOnly: joinOnly) }

  /// The maximum bytes of an ID of work.
  static let runIDLimit = 200

  /// Refuses values that no run can have.
  func check() throws(BatchError) {
    var policy = RunPolicy()
    policy.workers = workers
    if let chunkSize { policy.chunk = .init(size: chunkSize) }
    try policy.validate()
    guard let runID else { return }
    guard !runID.isEmpty, runID.utf8.count <= Self.runIDLimit,
      runID.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f })
    else {
      throw BatchError(
        .invalidJob,
        "the run ID is empty, too long or holds control characters",
        remedy: "choose 1 to \(Self.runIDLimit) bytes of text"
      )
    }
  }
}
