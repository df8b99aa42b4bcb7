package import BatchRuns
public import BatchIdentifiers
public import SystemPackage

/// Some of the identifiers of a run, or all of a file.
public struct IdentifierSelection: Sendable {
  /// Some of the identifiers of a run.
  public enum Outcome: String, CaseIterable, Sendable {
    /// All selected ones.
    case all
    /// Those not done yet.
    case remaining
    /// Those done, with any outcome.
    case done
    /// Those whose rows the action changed, deleted or exported.
    case succeeded
    /// Those for which the action had nothing to do.
    case unchanged
    /// Those whose rows were gone when their turn came.
    case vanished
    /// Those whose rows no longer satisfied `where`.
    case noLongerMatching
    /// Those that failed.
    case failed
  }

  private let all: PackedIdentifiers
  private let positions: PositionSet
  /// Why the identifiers failed, in list order; empty unless failed ones are selected.
  private let failures: [FailedIdentifier]
  /// The permissions of a file of these identifiers: those of their source.
  package let permissions: FilePermissions

  /// Identifiers of a run.
  ///
  /// - Parameters:
  ///   - all: Those of the run.
  ///   - outcome: Which of them.
  ///   - outcomes: The outcome of each; nil for all.
  ///   - permissions: The permissions of a file of these identifiers.
  /// - Throws: `BatchError` of code `outcomeNotRecorded` if the outcomes were not recorded per row.
  package init(
    _ all: PackedIdentifiers,
    _ outcome: Outcome,
    _ outcomes: RowOutcomes?,
    permissions: FilePermissions = .ownerReadWrite
  ) throws(BatchError) {
    self.all = all
    self.permissions = permissions
    positions = try outcomes?.positions(outcome, of: all.count) ?? PositionSet([0..<all.count])
    failures = outcome == .failed ? outcomes?.failed ?? [] : []
  }

  /// Identifiers of an identifier file, or of a checkpoint as far as the file itself has the
  /// outcomes.
  public init(ofFile path: FilePath, outcome: Outcome) throws(BatchError) {
    let file = try IdentifierFile(opening: path)
    var outcomes: RowOutcomes?
    if outcome != .all {
      guard !file.metadata.isEmpty else {
        throw BatchError(
          .damagedFile,
          "a list of identifiers has no outcomes",
          at: path.string,
          remedy: "name the job file, or a checkpoint"
        )
      }
      let checkpoint = try Checkpoint(reading: path)
      if checkpoint.metadata.ledger == .store, !checkpoint.progress.state.isFinished {
        throw BatchError(
          .damagedFile,
          "what is done of this run is recorded in the database, not in the file",
          at: path.string,
          remedy: "name the job file instead of the checkpoint"
        )
      }
      outcomes = try checkpoint.rowOutcomes()
    }
    try self.init(file.list, outcome, outcomes, permissions: FilePermissions(like: path))
  }

  /// An identifier that failed, and why.
  public struct Reason: Sendable, Encodable {
    /// The identifier's key, as in a URI.
    public let key: String
    /// The name of the error's code.
    public let code: String
    /// What was wrong.
    public let message: String
    /// How often it was tried.
    public let attempt: Int
    /// When it last failed: ISO 8601 in UTC.
    public let failedAt: String
  }

  /// Why identifiers failed, the most frequent reasons first.
  package func failureCounts(atMost limit: Int) throws(BatchError) -> [FailureCount] {
    try FailureCount.all(of: failures, atMost: limit) { failure throws(BatchError) in
      try all.key(at: failure.position).description
    }
  }

  /// Why identifiers failed, in list order; empty unless failed ones were requested.
  ///
  /// - Throws: `BatchError` of code `damagedFile` if the list cannot be read.
  public func reasons() throws(BatchError) -> [Reason] {
    try failures.map { failure throws(BatchError) in
      Reason(
        key: try all.key(at: failure.position).description,
        code: failure.code,
        message: failure.message.onOneLine,
        attempt: failure.attempt,
        failedAt: failure.failedAt
      )
    }
  }

  /// The number of identifiers.
  public var count: Int { positions.count }

  /// Reads the identifiers into a separate list, in the order of the selection.
  ///
  /// - Throws: `BatchError` with code `fileAccess` or `damagedFile`, naming the block.
  /// - Complexity: O(*n*) time, the memory of the packed list.
  public func load() throws(BatchError) -> IdentifierList {
    try list.loaded()
  }

  /// The identifiers; the file's own list if it is the whole selection.
  package var list: PackedIdentifiers {
    get throws(BatchError) {
      positions.count == all.count ? all : try all.slice(positions.ranges).packed
    }
  }
}

extension RowOutcomes {
  /// The positions with an outcome.
  ///
  /// - Throws: `BatchError` of code `outcomeNotRecorded` if the outcomes were not recorded per row.
  func positions(
    _ outcome: IdentifierSelection.Outcome,
    of count: Int
  ) throws(BatchError) -> PositionSet {
    let counts = done.outcomes
    switch outcome {
    case .all: return PositionSet([0..<count])
    case .remaining: return PositionSet(done.remaining(of: count))
    case .done: return all
    case .succeeded: return try succeeded
    case .unchanged: return try recorded(passedOver.unchanged, counts.unchanged)
    case .vanished: return try recorded(passedOver.vanished, counts.vanished)
    case .noLongerMatching:
      return try recorded(passedOver.noLongerMatching, counts.noLongerMatching)
    case .failed: return PositionSet(failed.map { $0.position..<($0.position + 1) })
    }
  }
}
