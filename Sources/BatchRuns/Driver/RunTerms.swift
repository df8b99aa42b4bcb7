package import BatchIdentifiers

/// How a run is to be carried out, whatever it does and wherever it is recorded.
package struct RunTerms: Sendable {
  /// The name of the work.
  package let name: String
  /// The policy, with what differs from one run to the next.
  package let policy: RunPolicy
  /// The number of workers that are asked for.
  package let workerCount: Int
  /// The files of the run.
  package let files: RunFiles
  /// How often to report progress.
  package let progressInterval: Duration
  /// Words an error for whoever wrote the work.
  package let phrase: @Sendable (BatchError) -> BatchError
  /// The machine that it is on.
  package let host: RunEnvironment

  package init(
    name: String,
    policy: RunPolicy,
    workerCount: Int,
    files: RunFiles,
    progressInterval: Duration,
    phrase: @escaping @Sendable (BatchError) -> BatchError,
    on host: RunEnvironment = RunEnvironment()
  ) {
    self.name = name
    self.policy = policy
    self.workerCount = workerCount
    self.files = files
    self.progressInterval = progressInterval
    self.phrase = phrase
    self.host = host
  }
}

/// Whom a run tells about itself; none of their problems stops it.
package protocol RunNotifier: Sendable {
  /// Tells that this process begins with the chunks.
  ///
  /// - Parameters:
  ///   - summary: The state of the run.
  ///   - isAfterKill: Whether the previous process was killed before it recorded its end.
  func begin(_ summary: RunSummary, afterKill isAfterKill: Bool) async

  /// Tells that the run is held, without waiting for anybody.
  func hold(_ summary: RunSummary)

  /// Tells how the run, or this process's part of it, has ended.
  func end(_ summary: RunSummary) async

  /// Waits until everybody was told.
  func settle() async

  /// The messages since the last call.
  func takeMessages() -> [String]
}
