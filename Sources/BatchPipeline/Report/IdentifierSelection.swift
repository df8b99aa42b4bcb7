import BatchEngine
public import BatchIdentifiers
import BatchStore
public import SystemPackage

/// Some of the identifiers of a run, or all of a file.
public struct IdentifierSelection: Sendable {
  /// A part of the identifiers of a run.
  public enum Outcome: String, CaseIterable, Sendable {
    /// All that were selected.
    case all
    /// Those that are not done yet.
    case remaining
    /// Those that are done, whatever became of them.
    case done
    /// Those that failed.
    case failed
  }

  private let all: PackedIdentifiers
  private let positions: [Range<Int>]
  /// Why the identifiers failed, in the order of the list; none unless those that failed are selected.
  private var failures: [FailedIdentifier] = []
  /// The permissions of a file of these identifiers: those of what they are from.
  package let permissions: FilePermissions

  /// Identifiers of a job's last run.
  public init(ofJob job: Job, outcome: Outcome) async throws(BatchError) {
    let checkpoint = try Checkpoint(ofJob: job)
    permissions = job.files.permissions
    all = checkpoint.list
    let done = try await checkpoint.doneRanges(ofJob: job)
    if outcome == .failed {
      failures = try await checkpoint.failures(ofJob: job, done)
      positions = failures.map { $0.position..<($0.position + 1) }
    } else {
      positions = Self.positions(outcome, done, count: all.count)
    }
  }

  /// Identifiers of an identifier file, or of a checkpoint as far as it says itself.
  public init(ofFile path: FilePath, outcome: Outcome) throws(BatchError) {
    let file = try IdentifierFile(opening: path)
    permissions = FilePermissions(like: path)
    all = file.list
    guard !file.metadata.isEmpty else {
      guard outcome == .all else {
        throw BatchError(
          .damagedFile,
          "a list of identifiers has no outcomes",
          at: path.string,
          remedy: "name the job file, or a checkpoint"
        )
      }
      positions = Self.positions(.all, DoneRanges(), count: all.count)
      return
    }
    let checkpoint = try Checkpoint(reading: path)
    if outcome != .all, checkpoint.metadata.ledger == .store, !checkpoint.progress.state.isFinished
    {
      throw BatchError(
        .damagedFile,
        "what is done of this run is recorded in the database, not in the file",
        at: path.string,
        remedy: "name the job file instead of the checkpoint"
      )
    }
    if outcome == .failed {
      failures = try checkpoint.failedIdentifiers().sorted { $0.position < $1.position }
      positions = failures.map { $0.position..<($0.position + 1) }
    } else {
      positions = Self.positions(outcome, checkpoint.progress.done, count: all.count)
    }
  }

  /// An identifier that failed, and why.
  public struct Reason: Sendable, Encodable {
    /// The identifier's key, as it stands in a URI.
    public let key: String
    /// The name of the error's code.
    public let code: String
    /// What was wrong.
    public let message: String
    /// How often it has been tried.
    public let attempt: Int
    /// When it failed last: ISO 8601 in UTC.
    public let failedAt: String
  }

  /// Why identifiers failed, in the order of the list; none unless those that failed were asked for.
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

  private static func positions(
    _ outcome: Outcome,
    _ done: DoneRanges,
    count: Int
  ) -> [Range<Int>] {
    switch outcome {
    case .all: count == 0 ? [] : [0..<count]
    case .remaining: done.remaining(of: count)
    case .done: done.rows.map { $0.first..<$0.next }
    case .failed: []
    }
  }

  /// How many there are.
  public var count: Int { positions.reduce(0) { $0 + $1.count } }

  /// Reads the identifiers into a list of their own, in the order of the selection.
  ///
  /// - Throws: `BatchError` with code `fileAccess` or `damagedFile`, naming the block.
  /// - Complexity: O(*n*) time, the memory of the packed list.
  public func load() throws(BatchError) -> IdentifierList {
    try list.loaded()
  }

  /// The identifiers, in the file where they are all of it.
  package var list: PackedIdentifiers {
    get throws(BatchError) {
      positions == [0..<all.count] ? all : try all.slice(positions).packed
    }
  }
}

extension Checkpoint {
  /// The identifiers that failed, from the store's ledger, in the order of the list.
  fileprivate func failures(
    ofJob job: Job,
    _ done: DoneRanges
  ) async throws(BatchError) -> [FailedIdentifier] {
    guard done.outcomes.failed > 0 else { return [] }
    // The file of a finished run has them all; until then the store is ahead of it.
    guard metadata.ledger == .store, !progress.state.isFinished else {
      // That of a killed export may have failures of chunks that are not done.
      return try failedIdentifiers().filter { done.contains($0.position) }
        .sorted { $0.position < $1.position }
    }
    let store = try await Store(
      path: job.database.path.string,
      isReadOnly: true,
      busyTimeout: job.database.busyTimeout
    )
    let failures = try await store.failedIdentifiers(ofRun: metadata.run)
    guard failures.allSatisfy({ (0..<list.count).contains($0.position) }) else {
      throw BatchError(
        .damagedFile,
        "the table _batch_failure and the checkpoint do not belong together",
        at: path.string,
        remedy: "run with --fresh to select anew"
      )
    }
    return failures.sorted { $0.position < $1.position }
  }
}
