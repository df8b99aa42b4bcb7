package import BatchIdentifiers

/// The settings of a run that depend neither on its work nor on where it is recorded.
package struct RunTerms: Sendable {
  /// The name of the work.
  package let name: String
  /// Includes the settings that differ from one run to the next.
  package let policy: RunPolicy
  /// The requested number of workers.
  package let workerCount: Int
  package let files: RunFiles
  package let progressInterval: Duration
  /// Whether a run that must be approved waits for that, instead of ending.
  package let waitsForApproval: Bool
  /// Rewords an error for the author of the job or program.
  package let phrase: @Sendable (BatchError) -> BatchError
  package let host: RunEnvironment

  package init(
    name: String,
    policy: RunPolicy,
    workerCount: Int,
    files: RunFiles,
    progressInterval: Duration,
    waitsForApproval: Bool = false,
    phrase: @escaping @Sendable (BatchError) -> BatchError,
    on host: RunEnvironment = RunEnvironment()
  ) {
    self.name = name
    self.policy = policy
    self.workerCount = workerCount
    self.files = files
    self.progressInterval = progressInterval
    self.waitsForApproval = waitsForApproval
    self.phrase = phrase
    self.host = host
  }
}

/// Receives notifications of a run; its problems never stop the run.
package protocol RunNotifier: Sendable {
  /// This process begins with the chunks; `isAfterKill` says that the previous process was killed
  /// before it recorded its end.
  func begin(_ summary: RunSummary, afterKill isAfterKill: Bool) async

  /// The run is held; must not wait.
  func hold(_ summary: RunSummary)

  /// The run, or this process's part of it, has ended.
  func end(_ summary: RunSummary) async

  /// Waits until all notifications are delivered.
  func settle() async

  /// The messages since the last call.
  func takeMessages() -> [String]
}
