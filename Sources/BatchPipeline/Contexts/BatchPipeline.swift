public import BatchIdentifiers
public import BatchStore
public import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Works through a list of identifiers by objects: a fresh background context for each chunk.
///
///     let unpaid = try await store.fetchIdentifiers(
///       FetchRequest(entity: "Order", where: "paid_at IS NULL"))
///     let pipeline = BatchPipeline(container, checkpoint: "reminders.batch")
///     let result = try await pipeline.run(unpaid) { context, identifiers in
///       for order in try context.fetch(identifiers, as: Order.self, skippingMissing: true) {
///         order.reminders += 1
///       }
///     }
///
/// What the closure changes is saved when it returns, in one transaction with the ledger's record
/// that the chunk is done; then the context and its objects are let go. Killed at any moment, the
/// same call with the same checkpoint goes on with the chunks that are not done. Without a
/// checkpoint nothing is recorded, and nothing can be resumed; a chunk that changes nothing then
/// takes no lock, so that rows of a store that is read only can be gone through.
public struct BatchPipeline: Sendable {
  /// What is done about identifiers without a row.
  public enum MissingRows: Sendable {
    /// They are counted, and the chunk goes on without them.
    case counted
    /// They fail the run with `BatchError` of code `objectNotFound`.
    case refused
  }

  /// What a run came to.
  public struct Result: Sendable, Hashable {
    /// How many identifiers the closure was given, over all resumptions.
    public var requested: Int
    /// How many of them had a row; the others are missing.
    public var resolved: Int
    /// How many were done already when this call began.
    public var resumedAt: Int

    /// How many had no row.
    public var missing: Int { requested - resolved }
  }

  /// The stores and classes.
  public let container: ModelContainer
  /// How many identifiers the closure is given at once.
  public var chunkSize: Int
  /// How many contexts work at once.
  public var workers: Int
  /// What is done about identifiers without a row.
  public var missingRows: MissingRows
  /// The file that makes the run resumable; nil for none.
  public var checkpoint: FilePath?

  /// How often a chunk is begun anew because somebody else changed its rows before it was saved.
  private static let conflictLimit = 10

  /// A pipeline over the stores of a container.
  ///
  /// - Precondition: `chunkSize` and `workers` are positive.
  public init(
    _ container: ModelContainer,
    chunkSize: Int = 1000,
    workers: Int = 2,
    missingRows: MissingRows = .counted,
    checkpoint: FilePath? = nil
  ) {
    precondition(chunkSize > 0 && workers > 0, "a pipeline of no identifiers or no workers")
    self.container = container
    self.chunkSize = chunkSize
    self.workers = workers
    self.missingRows = missingRows
    self.checkpoint = checkpoint
  }

  /// Calls `body` with each chunk of the identifiers and a context of its own, and saves.
  ///
  /// The rows of the chunk are in the context already when `body` is called, so that look-ups read
  /// nothing. Where another connection changes a row before the chunk is saved, the chunk is begun
  /// anew in another context: nothing of the other's is lost, and `body` may be called again for the
  /// same identifiers. Chunks are committed in no certain order.
  ///
  /// - Parameters:
  ///   - identifiers: The list, of one of the container's stores.
  ///   - body: Changes objects, and does not keep them. Called on threads of the contexts. It cannot
  ///     save, nor carry out batch requests in the context: what it did would be committed without
  ///     the record that it is done, and be done again after a crash.
  /// - Returns: How many identifiers were done, and how many of them had a row.
  /// - Throws: What `body` throws, `BatchError` with code `otherRun` for the checkpoint of another
  ///   list, `alreadyRunning` if another process works on it, `objectNotFound` for missing rows if
  ///   they are refused, `nestedSave` if `body` saves, and whatever saving throws. The chunk is not done then; chunks that were
  ///   committed stay, and a checkpoint can be resumed.
  public func run(
    _ identifiers: IdentifierList,
    _ body: @escaping @Sendable (ModelContext, [PersistentIdentifier]) throws -> Void
  ) async throws -> Result {
    let store = try place(of: identifiers)
    guard let checkpoint else {
      var result = Result(requested: 0, resolved: 0, resumedAt: 0)
      let chunks = ChunkQueue([0..<identifiers.count], chunkSize)
      let outcomes = try await work(chunks, identifiers, store, nil, body)
      result.requested = outcomes.total
      result.resolved = outcomes.succeeded
      return result
    }
    let lock = try RunLock(forCheckpoint: checkpoint, permissions: permissions(of: store))
    defer { withExtendedLifetime(lock) {} }
    let lane = try container.stores[store].makeWriterLane(WriterConfiguration())
    // The run is this lane's, for as long as there is the lane.
    defer { withExtendedLifetime(lane) {} }
    let (file, done) = try await open(checkpoint, identifiers, store, lane)
    let run = file.metadata.run
    let chunks = ChunkQueue(done.remaining(of: identifiers.count), chunkSize)
    do {
      _ = try await work(chunks, identifiers, store, ContextLedger(ofRun: run), body)
    } catch {
      // The ledger knows what is done even if this cannot be recorded.
      _ = try? await record(.failed, in: file, store)
      throw error
    }
    // The record is the last that is written: after it the same call begins anew. Nobody waits for the
    // disk: if that failed, the caller would be told of a failure after which nothing is to be resumed.
    _ = try? await lane.emptyLog()
    let outcomes = try await record(.completed, in: file, store)
    return Result(
      requested: outcomes.total,
      resolved: outcomes.succeeded,
      resumedAt: done.count
    )
  }

  // MARK: Chunks

  private func work(
    _ chunks: ChunkQueue,
    _ identifiers: IdentifierList,
    _ store: Int,
    _ ledger: ContextLedger?,
    _ body: @escaping @Sendable (ModelContext, [PersistentIdentifier]) throws -> Void
  ) async throws -> Outcomes {
    try await withThrowingTaskGroup(of: Outcomes.self) { group in
      for _ in 0..<workers {
        group.addTask {
          var outcomes = Outcomes()
          while !Task.isCancelled, let positions = chunks.next() {
            outcomes += try await carryOut(positions, identifiers, store, ledger, body)
          }
          try Task.checkCancellation()
          return outcomes
        }
      }
      return try await group.reduce(into: Outcomes()) { $0 += $1 }
    }
  }

  private func carryOut(
    _ positions: Range<Int>,
    _ list: IdentifierList,
    _ store: Int,
    _ ledger: ContextLedger?,
    _ body: @escaping @Sendable (ModelContext, [PersistentIdentifier]) throws -> Void
  ) async throws -> Outcomes {
    var conflicts = 0
    while true {
      do {
        return try await container.newBackgroundContext().perform { context throws in
          let identifiers = Array(list[positions])
          let objects = try context.objects(of: identifiers)
          var outcomes = Outcomes()
          outcomes.succeeded = identifiers.count { objects[$0] != nil }
          outcomes.vanished = identifiers.count - outcomes.succeeded
          if outcomes.vanished > 0, missingRows == .refused {
            throw BatchError(
              .objectNotFound,
              "\(outcomes.vanished) of \(identifiers.count) identifiers have no row",
              at: identifiers.first { objects[$0] == nil }?.description,
              remedy: "run with missingRows: .counted to go on without them"
            )
          }
          // The context does not keep its objects alive, and they were read for the closure.
          try withExtendedLifetime(objects) {
            try context.withoutSaving { try body(context, identifiers) }
          }
          guard let ledger else {
            // Where nothing was changed, this takes no lock and needs no store that can be written.
            try context.save()
            return outcomes
          }
          try context.save(withStore: store) { connection throws(BatchError) in
            try ledger.enter(positions, outcomes, in: connection)
          }
          return outcomes
        }
      } catch let error as BatchError where error.code == .mergeConflict {
        conflicts += 1
        guard conflicts < Self.conflictLimit else { throw error }
      }
    }
  }

  // MARK: Checkpoints

  private func place(of identifiers: IdentifierList) throws(BatchError) -> Int {
    let uuid = identifiers.header.storeIdentifier
    if let place = container.stores.firstIndex(where: { $0.identity.uuid == uuid }) { return place }
    throw BatchError(
      .foreignIdentifier,
      "the identifiers are of a store that the container does not have",
      at: uuid
    )
  }

  /// Opens the checkpoint of an unfinished run of the same list, or makes one of a new run.
  ///
  /// - Returns: The checkpoint, and what the store's ledger has done.
  private func open(
    _ path: FilePath,
    _ identifiers: IdentifierList,
    _ store: Int,
    _ lane: WriterLane
  ) async throws(BatchError) -> (Checkpoint, DoneRanges) {
    _ = try await lane.prepareStore(container.stores[store].identity)
    if FileSystem.status(of: path) != nil {
      let file = try Checkpoint(reading: path)
      if !file.progress.state.isFinished {
        guard file.metadata.job == Self.job(path), try file.list.hasSameKeys(as: identifiers)
        else {
          throw BatchError(
            .otherRun,
            "the checkpoint is of an unfinished run of other identifiers",
            at: path.string,
            remedy: "finish that run, or move the file away"
          )
        }
        if let done = try await lane.resume(file.metadata.run) { return (file, done) }
        guard file.progress.done.rows.isEmpty else { throw file.missingLedger() }
        // Killed after the checkpoint was saved and before the run was entered.
        try await begin(file.metadata, identifiers, at: path, in: lane)
        return (file, DoneRanges())
      }
    }
    let metadata = RunMetadata(
      run: UUID().uuidString,
      job: Self.job(path),
      startedAt: Date.now.formatted(.iso8601),
      fingerprint: "contexts",
      schema: [],
      ledger: .store
    )
    let file = try Checkpoint(
      creating: path,
      list: identifiers,
      metadata: metadata,
      permissions: permissions(of: store)
    )
    try await begin(metadata, identifiers, at: path, in: lane)
    return (file, DoneRanges())
  }

  /// The permissions of the files that tell of a store's rows.
  private func permissions(of store: Int) -> FilePermissions {
    FilePermissions(like: FilePath(container.stores[store].path))
  }

  /// Enters a run in the ledger; the caller gives the list, so that earlier ones are in nobody's way.
  private func begin(
    _ metadata: RunMetadata,
    _ identifiers: IdentifierList,
    at path: FilePath,
    in lane: WriterLane
  ) async throws(BatchError) {
    var description = RunDescription(metadata, total: identifiers.count, at: path)
    description.setsOthersAside = true
    // Files in other folders may have the same name.
    description.job = "contexts:\(description.checkpoint)"
    try await lane.begin(description)
  }

  /// The name under which the ledger keeps the runs of a checkpoint.
  private static func job(_ path: FilePath) -> String { "contexts:\(path.stem ?? "")" }

  @discardableResult
  private func record(
    _ state: RunState,
    in file: Checkpoint,
    _ store: Int
  ) async throws(BatchError) -> Outcomes {
    var progress = file.progress
    progress.state = state
    progress.done =
      try await container.stores[store].doneRanges(ofRun: file.metadata.run) ?? DoneRanges()
    if state.isFinished {
      try file.recordUnsynced(progress)
    } else {
      try file.record(progress)
    }
    return progress.done.outcomes
  }
}

extension IdentifierList {
  /// Whether another list names the same rows in the same order.
  ///
  /// - Complexity: O(*n*)
  fileprivate func hasSameKeys(as other: IdentifierList) throws(BatchError) -> Bool {
    guard count == other.count, header.entityName == other.header.entityName,
      header.storeIdentifier == other.header.storeIdentifier,
      header.keyKind == other.header.keyKind
    else { return false }
    for start in stride(from: 0, to: count, by: 65_536) {
      let range = start..<Swift.min(start + 65_536, count)
      switch header.keyKind {
      case .integer:
        guard try integers(in: range) == other.integers(in: range) else { return false }
      case .encoded:
        let (mine, others) = (try encodedKeys(in: range), try other.encodedKeys(in: range))
        guard mine.elementsEqual(others) else { return false }
      }
    }
    return true
  }
}

/// The chunks that are still to do, handed out one by one.
private final class ChunkQueue: Sendable {
  private let state: Lock<(ranges: [Range<Int>], place: Int)>
  private let size: Int

  init(_ ranges: [Range<Int>], _ size: Int) {
    state = Lock((ranges.filter { !$0.isEmpty }, 0))
    self.size = size
  }

  func next() -> Range<Int>? {
    state.withLock { state in
      guard state.place < state.ranges.count else { return nil }
      let range = state.ranges[state.place]
      let end = min(range.lowerBound + size, range.upperBound)
      if end == range.upperBound {
        state.place += 1
      } else {
        state.ranges[state.place] = end..<range.upperBound
      }
      return range.lowerBound..<end
    }
  }
}
