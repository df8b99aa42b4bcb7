package import BatchRuns
package import BatchIdentifiers
package import BatchSQLite

/// Runs by objects: a closure runs with a new context for each chunk on a worker's thread, and the
/// writer lane saves it together with the record that the chunk is done.
package struct ContextProcessor: ChunkProcessor {
  package let list: PackedIdentifiers
  package let work: ContextWork
  /// The lane that saves; nil if the store cannot be written.
  package let lane: WriterLane?
  /// Whether the store records the run: then each chunk is written, even if nothing was changed.
  private let isRecorded: Bool
  private let store: Store
  package let onFailure: FailurePolicy
  /// The run whose changes are kept for an undo; nil to keep none.
  let recordedRun: String?
  private let times: HandlerTimes<ChunkContext>

  package init(
    list: PackedIdentifiers,
    work: ContextWork,
    store: Store,
    lane: WriterLane?,
    isRecorded: Bool,
    onFailure: FailurePolicy,
    inOrder: Bool = false,
    recordingFor run: String? = nil
  ) {
    recordedRun = run
    self.inOrder = inOrder
    self.list = list
    self.work = work
    self.lane = lane
    self.store = store
    self.isRecorded = isRecorded
    self.onFailure = onFailure
    times = HandlerTimes(limit: work.timeLimit)
  }

  /// How often part of a chunk starts over because others have changed its rows before it was
  /// saved.
  private static let conflictLimit = 50

  package let inOrder: Bool
  package var hasLostWorkers: Bool { times.hasLost }
  package var handlerTimeLimit: Duration? { work.timeLimit ?? .seconds(60) }

  package func makeWorker(_ label: String) -> StoreConnection { store.makeWorker(label) }

  /// Some positions of a chunk, with the result of the closure.
  enum Part: Sendable {
    case done(ChunkContext)
    case failed(Int, BatchError)
  }

  /// A chunk that the closure has processed, in one context or, if identifiers fail on their own,
  /// in several.
  package struct Prepared: Sendable {
    fileprivate var parts: [Part]
    fileprivate let worker: StoreConnection
  }

  // MARK: Preparing

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in worker: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let (parts, end) = try await parts(
      of: positions,
      in: worker,
      holding: ChunkBytes.chunkLimit
    )
    let bytes = parts.reduce(0) { sum, part in
      if case .done(let context) = part { sum + context.byteCount } else { sum }
    }
    return PreparedChunk(
      content: Prepared(parts: parts, worker: worker),
      count: end - positions.lowerBound,
      byteCount: bytes
    )
  }

  /// Calls the closure for some positions: for all in one context or, if it fails, for halves.
  ///
  /// Returns the parts, ascending, and the first position that was not reached because enough is
  /// held.
  private func parts(
    of positions: Range<Int>,
    in worker: StoreConnection,
    holding byteLimit: Int
  ) async throws(BatchError) -> (parts: [Part], end: Int) {
    var bisection = Bisection(positions, onFailure)
    var done: [ChunkContext] = []
    var bytes = 0
    while bytes < byteLimit, let range = bisection.next() {
      do throws(BatchError) {
        let context = try await context(
          for: range,
          in: worker,
          holding: byteLimit - bytes
        )
        done.append(context)
        bytes += context.byteCount
        bisection.add(context.positions.upperBound..<range.upperBound)
      } catch {
        guard onFailure != .failChunk, error.isAboutObjects else { throw error }
        try bisection.failed(range, naming(error, at: range))
      }
    }
    var parts = done.map { (start: $0.positions.lowerBound, part: Part.done($0)) }
    parts += bisection.failures.map { ($0.position, .failed($0.position, $0.error)) }
    parts.sort { $0.start < $1.start }
    return (parts.map(\.part), bisection.position ?? positions.upperBound)
  }

  private func context(
    for positions: Range<Int>,
    in worker: StoreConnection,
    holding byteLimit: Int
  ) async throws(BatchError) -> ChunkContext {
    let (list, work) = (list, work)
    return try await times.wait(for: worker) { begin throws(BatchError) in
      try await worker.perform { connection throws(BatchError) in
        begin()
        return try work.perform(list, positions, holding: byteLimit, in: connection)
      }
    }
  }

  /// The error recorded for an identifier; it also names the object that it concerns if this is
  /// another one.
  private func naming(_ error: BatchError, at positions: Range<Int>) -> BatchError {
    guard positions.count == 1, let problem = error.saveProblems.first,
      error.saveProblems.count == 1,
      let identifier = try? list.identifiers(in: positions).first, problem.identifier != identifier
    else { return error }
    var named = error
    named.message = "\(problem.object): \(error.message)"
    return named
  }

  // MARK: Committing

  package func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    var parts = prepared.parts
    var conflicts = 0
    while true {
      guard isRecorded || parts.contains(where: \.hasChanges) else {
        // Without changes, this takes no lock and works on a read-only store.
        var passedOver = PassedOver()
        for case .done(let context) in parts {
          let start = context.positions.lowerBound - positions.lowerBound
          passedOver.vanished.formUnion(context.vanished(from: start))
        }
        return Commit(
          outcomes: parts.reduce(into: Outcomes()) { $0 += $1.outcomes },
          passedOver: passedOver,
          duration: .zero
        )
      }
      guard let lane else { throw work.isReadOnly }
      let refused = Lock<[Int: BatchError]>([:])
      do throws(BatchError) {
        return try await save(parts, at: positions, by: lane, noting: refused)
      } catch {
        guard error.code == .rowsChanged else { throw error }
      }
      let errors = refused.withLock { $0 }
      var renewed: [Part] = []
      for (index, part) in parts.enumerated() {
        guard let error = errors[index], case .done(let context) = part else {
          renewed.append(part)
          continue
        }
        var ranges = [context.positions]
        if error.code == .mergeConflict {
          conflicts += 1
          guard conflicts <= Self.conflictLimit else { throw error.ofHotRows }
        } else {
          var bisection = Bisection(context.positions, .failChunk)
          _ = bisection.next()
          guard bisection.split(context.positions) else {
            let position = context.positions.lowerBound
            renewed.append(.failed(position, naming(error, at: context.positions)))
            continue
          }
          ranges = [bisection.next(), bisection.next()].compactMap(\.self)
        }
        for range in ranges {
          renewed += try await self.parts(of: range, in: prepared.worker, holding: .max).parts
        }
      }
      parts = renewed
    }
  }
}

extension BatchError {
  fileprivate var ofHotRows: BatchError {
    var error = self
    error.remedy =
      "others change these rows faster than the closure does: make it shorter, or chunks smaller"
    return error
  }
}

extension ContextProcessor.Part {
  var hasChanges: Bool {
    if case .done(let context) = self { context.hasChanges } else { false }
  }

  var outcomes: Outcomes {
    switch self {
    case .done(let context):
      var outcomes = Outcomes()
      outcomes.succeeded = context.succeeded
      outcomes.vanished = context.positions.count - context.succeeded
      return outcomes
    case .failed:
      var outcomes = Outcomes()
      outcomes.failed = 1
      return outcomes
    }
  }
}
