public import BatchIdentifiers
import BatchStore
public import SystemPackage

/// Some of the identifiers of a run, or all of a file.
public struct IdentifierSelection: Sendable {
  /// A part of the identifiers of a run.
  public enum Outcome: Sendable {
    /// All that were selected.
    case all
    /// Those that are not done yet.
    case remaining
    /// Those that are done, whatever became of them.
    case done
    /// Those that failed.
    case failed
  }

  private let list: IdentifierList
  private let positions: [Range<Int>]

  /// Identifiers of a job's last run.
  public init(ofJob job: Job, outcome: Outcome) async throws(BatchError) {
    let checkpoint = try Checkpoint(ofJob: job)
    list = checkpoint.list
    let done = try await checkpoint.doneRanges(ofJob: job)
    positions = Self.positions(outcome, done, count: list.count)
  }

  /// Identifiers of an identifier file, or of a checkpoint as far as it says itself.
  public init(ofFile path: FilePath, outcome: Outcome) throws(BatchError) {
    let file = try IdentifierFile(opening: path)
    list = file.list
    guard !file.metadata.isEmpty else {
      guard outcome == .all else {
        throw BatchError(
          .damagedFile,
          "a list of identifiers has no outcomes",
          at: path.string,
          remedy: "name the job file, or a checkpoint"
        )
      }
      positions = Self.positions(.all, DoneRanges(), count: list.count)
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
    positions = Self.positions(outcome, checkpoint.progress.done, count: list.count)
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
    // Nothing can fail and be passed over yet: the first failure ends a run.
    case .failed: []
    }
  }

  /// How many there are.
  public var count: Int { positions.reduce(0) { $0 + $1.count } }

  /// Calls `body` with each identifier, in the order of the list.
  ///
  /// - Complexity: O(*n*) time; memory for some thousand identifiers.
  public func forEach(
    _ body: (PersistentIdentifier) throws(BatchError) -> Void
  ) throws(BatchError) {
    for range in positions {
      for position in range { try body(try list.identifier(at: position)) }
    }
  }

  /// Saves the identifiers as a file of their own.
  ///
  /// - Throws: `BatchError` with code `fileAccess` if there is a file of this name already.
  public func save(to path: FilePath) throws(BatchError) {
    if positions == [0..<list.count] {
      return try IdentifierFile.create(at: path, list: list)
    }
    var builder = IdentifierListBuilder(
      storeIdentifier: list.header.storeIdentifier,
      entityName: list.header.entityName,
      keyKind: list.header.keyKind
    )
    for range in positions {
      for position in range { builder.append(try list.key(at: position)) }
    }
    try IdentifierFile.create(at: path, list: builder.finish())
  }
}
