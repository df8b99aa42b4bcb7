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
  /// The permissions of a file of these identifiers: those of what they are from.
  package let permissions: FilePermissions

  /// Identifiers of a job's last run.
  public init(ofJob job: Job, outcome: Outcome) async throws(BatchError) {
    let checkpoint = try Checkpoint(ofJob: job)
    permissions = job.files.permissions
    all = checkpoint.list
    let done = try await checkpoint.doneRanges(ofJob: job)
    if outcome == .failed {
      positions = try await checkpoint.failedPositions(ofJob: job, done)
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
      positions = checkpoint.failedAttempts.keys.sorted().map { $0..<($0 + 1) }
    } else {
      positions = Self.positions(outcome, checkpoint.progress.done, count: all.count)
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
  /// The positions of the identifiers that failed, from the store's ledger.
  fileprivate func failedPositions(
    ofJob job: Job,
    _ done: DoneRanges
  ) async throws(BatchError) -> [Range<Int>] {
    guard done.outcomes.failed > 0 else { return [] }
    // The file of a finished run has them all; until then the store is ahead of it.
    guard metadata.ledger == .store, !progress.state.isFinished else {
      // That of a killed export may have failures of chunks that are not done.
      return failedAttempts.keys.filter(done.contains).sorted().map { $0..<($0 + 1) }
    }
    let store = try await Store(
      path: job.database.path.string,
      isReadOnly: true,
      busyTimeout: job.database.busyTimeout
    )
    let positions = try await store.failedIdentifiers(ofRun: metadata.run).map(\.position)
    guard positions.allSatisfy((0..<list.count).contains) else {
      throw BatchError(
        .damagedFile,
        "the table _batch_failure and the checkpoint do not belong together",
        at: path.string,
        remedy: "run with --fresh to select anew"
      )
    }
    return positions.map { $0..<($0 + 1) }
  }
}
