package import BatchRuns
public import BatchIdentifiers
public import SystemPackage

/// Some identifiers of a run, or all identifiers of a file.
public struct IdentifierSelection: Sendable {
  /// The identifiers to select from a run.
  public enum Outcome: String, CaseIterable, Sendable {
    /// All identifiers.
    case all
    /// The identifiers that are not done yet.
    case remaining
    /// The identifiers that are done, whatever their outcome.
    case done
    /// The identifiers whose rows were changed, deleted or exported.
    case succeeded
    /// The identifiers that the action left as they were, because it had nothing to do.
    case unchanged
    /// The identifiers whose rows were gone when their turn came.
    case vanished
    /// The identifiers whose rows no longer satisfied `where`.
    case noLongerMatching
    /// The identifiers that failed.
    case failed
  }

  /// A part of a run.
  public enum Part: String, CaseIterable, Sendable {
    /// The whole run.
    case all
    /// The rows that the run processed first.
    case canary
    /// The rows that it processes after its canary.
    case rest
  }

  private let all: PackedIdentifiers
  private let positions: PositionSet
  /// In list order; empty unless failed identifiers are selected.
  private let failures: [FailedIdentifier]
  /// A file of these identifiers gets the permissions of their source.
  package let permissions: FilePermissions

  /// Selects identifiers of a run; `outcomes` are needed unless all are selected.
  ///
  /// `canary` has the positions of the run's canary, which only matter for a part of it.
  ///
  /// Throws `outcomeNotRecorded` if the outcomes were not recorded per row, and for a part of a run without
  /// a canary.
  package init(
    _ all: PackedIdentifiers,
    _ outcome: Outcome,
    _ outcomes: RowOutcomes?,
    _ part: Part = .all,
    canary: [Range<Int>] = [],
    permissions: FilePermissions
  ) throws(BatchError) {
    guard part == .all || !canary.isEmpty else {
      throw BatchError(
        .outcomeNotRecorded,
        "the run has no canary, so it has no parts",
        remedy: "leave out --part"
      )
    }
    self.all = all
    self.permissions = permissions
    var positions =
      try outcomes?.positions(outcome, of: all.count) ?? PositionSet([0..<all.count])
    let trial = PositionSet(canary)
    var rest = PositionSet([0..<all.count])
    rest.subtract(trial)
    if part != .all { positions.subtract(part == .canary ? rest : trial) }
    self.positions = positions
    let failed = outcome == .failed ? outcomes?.failed ?? [] : []
    failures = failed.filter { failure in
      part == .all
        || canary.contains { $0.contains(failure.position) } == (part == .canary)
    }
  }

  /// Selects identifiers of an identifier file, or of a checkpoint by the outcomes in that file.
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
    /// The key of the identifier, as in a URI.
    public let key: String
    /// The name of the error's code.
    public let code: String
    /// The error message.
    public let message: String
    /// How often the identifier was tried.
    public let attempt: Int
    /// When it last failed, in ISO 8601 and UTC.
    public let failedAt: String
  }

  /// Why identifiers failed, the most frequent reasons first.
  package func failureCounts(atMost limit: Int) throws(BatchError) -> [FailureCount] {
    var counter = FailureCounter()
    for failure in failures { counter.add(failure) }
    return try counter.counts(atMost: limit) { failure throws(BatchError) in
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
  /// - Throws: `BatchError` of code `fileAccess` or `damagedFile`, naming the block.
  /// - Complexity: O(*n*) time, and the memory of the packed list.
  public func load() throws(BatchError) -> IdentifierList {
    try list.loaded()
  }

  /// The file's own list if all of it is selected.
  package var list: PackedIdentifiers {
    get throws(BatchError) {
      positions.count == all.count ? all : try all.slice(positions.ranges).packed
    }
  }
}

extension RowOutcomes {
  /// The positions with an outcome; throws `outcomeNotRecorded` if only counts were recorded.
  func positions(
    _ outcome: IdentifierSelection.Outcome,
    of count: Int
  ) throws(BatchError) -> PositionSet {
    switch outcome {
    case .all: PositionSet([0..<count])
    case .remaining: PositionSet(done.remaining(of: count))
    case .done: all
    case .succeeded: try positions(.succeeded)
    case .unchanged: try positions(.unchanged)
    case .vanished: try positions(.vanished)
    case .noLongerMatching: try positions(.noLongerMatching)
    case .failed: try positions(.failed)
    }
  }
}
