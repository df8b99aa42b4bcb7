import BatchIdentifiers
import BatchStore

/// Performs what a ``RunStateMachine`` decides: tasks for workers and writer, and the answers back.
struct RunLoop<Processor: ChunkProcessor> {
  private enum Answer: Sendable {
    case prepared(Range<Int>, worker: Int, Result<Processor.Prepared, BatchError>)
    case committed(Range<Int>, Result<Commit, BatchError>)
    case rested(Range<Int>)
    case stop
    case outOfTime
  }

  private let processor: Processor
  private let workers: [StoreConnection]
  private let stopRequests: AsyncStream<Void>
  private let backoff: Backoff
  private let deadline: ContinuousClock.Instant?
  private var machine: RunStateMachine
  private var prepared: [Range<Int>: Processor.Prepared] = [:]
  private var ending: RunStateMachine.Ending?
  /// The first error, which ended the run.
  private(set) var failure: BatchError?
  /// Whether the run was stopped because its time was over.
  private(set) var isOutOfTime = false

  /// A loop over the remaining positions of a list.
  init(
    remaining: [Range<Int>],
    sizing: ChunkSizing,
    workers: [StoreConnection],
    processor: Processor,
    backoff: Backoff,
    deadline: ContinuousClock.Instant?,
    stopRequests: AsyncStream<Void>
  ) {
    self.processor = processor
    self.backoff = backoff
    self.deadline = deadline
    self.workers = workers
    self.stopRequests = stopRequests
    machine = RunStateMachine(
      remaining: remaining,
      sizing: sizing,
      limits: .init(
        workers: workers.count,
        inOrder: processor.inOrder,
        retries: backoff.limit
      )
    )
  }

  /// Runs until every position is done, the run is stopped, or a chunk fails.
  ///
  /// - Parameters:
  ///   - onRetry: Called when a chunk has failed for the moment.
  ///   - onCommit: Called after each committed chunk; an error from it fails the run.
  /// - Returns: How the run ended.
  mutating func run(
    onRetry: (ChunkRetry) -> Void,
    onCommit: (Range<Int>, Outcomes) async throws(BatchError) -> Void
  ) async -> RunStateMachine.Ending {
    await withTaskGroup(of: Answer.self) { group in
      let stopRequests = stopRequests
      group.addTask {
        // Ends with the first request, or when this task is cancelled.
        for await _ in stopRequests { break }
        return .stop
      }
      if let deadline {
        group.addTask {
          try? await Task.sleep(until: deadline, clock: .continuous)
          return .outOfTime
        }
      }
      perform(machine.start(), in: &group)
      while ending == nil, let answer = await group.next() {
        switch answer {
        case .prepared(let chunk, let worker, .success(let value)):
          prepared[chunk] = value
          perform(machine.prepared(chunk, worker: worker), in: &group)
        case .prepared(let chunk, let worker, .failure(let error)):
          let isTransient = error.isTransient
          let actions = machine.failedToPrepare(chunk, worker: worker, isTransient: isTransient)
          rest(chunk, error, onRetry, in: &group)
          perform(actions, in: &group)
        case .committed(let chunk, .success(let commit)):
          // The writer goes on while this chunk is accounted for.
          perform(machine.committed(chunk, took: commit.duration), in: &group)
          do throws(BatchError) {
            try await onCommit(chunk, commit.outcomes)
          } catch {
            failure = failure ?? error
            perform(machine.fail(), in: &group)
          }
        case .committed(let chunk, .failure(let error)):
          let actions = machine.failedToCommit(chunk, isTransient: error.isTransient)
          rest(chunk, error, onRetry, in: &group)
          perform(actions, in: &group)
        case .rested(let chunk):
          perform(machine.rested(chunk), in: &group)
        case .stop:
          perform(machine.stop(), in: &group)
        case .outOfTime:
          isOutOfTime = true
          perform(machine.stop(), in: &group)
        }
      }
      group.cancelAll()
      return ending ?? .stopped
    }
  }

  /// Lets a chunk rest that has failed for the moment, or keeps its error if the run fails of it.
  private mutating func rest(
    _ chunk: Range<Int>,
    _ error: BatchError,
    _ onRetry: (ChunkRetry) -> Void,
    in group: inout TaskGroup<Answer>
  ) {
    let tries = machine.tries(of: chunk)
    var error = error
    let positions = "positions \(chunk.lowerBound) to \(chunk.upperBound - 1)"
    error.place = error.place.map { "\($0): \(positions)" } ?? positions
    if machine.isResting(chunk) {
      var generator = SystemRandomNumberGenerator()
      let delay = backoff.delay(before: tries, using: &generator)
      onRetry(
        ChunkRetry(
          positions: chunk,
          error: error,
          attempt: tries,
          limit: backoff.limit,
          delay: delay
        )
      )
      group.addTask {
        // Cancelled when the run ends, which then need not wait.
        try? await Task.sleep(for: delay)
        return .rested(chunk)
      }
    } else if machine.hasFailed, failure == nil {
      if tries > 1 { error.message += " (tried \(tries) times)" }
      failure = error
    }
  }

  private mutating func perform(
    _ actions: [RunStateMachine.Action],
    in group: inout TaskGroup<Answer>
  ) {
    let processor = processor
    for action in actions {
      switch action {
      case .prepare(let chunk, let worker):
        let context = workers[worker]
        group.addTask {
          do throws(BatchError) {
            let value = try await processor.prepare(chunk, in: context)
            return .prepared(chunk, worker: worker, .success(value))
          } catch {
            return .prepared(chunk, worker: worker, .failure(error))
          }
        }
      case .commit(let chunk):
        guard let value = prepared.removeValue(forKey: chunk) else {
          preconditionFailure("a chunk is committed that was not prepared")
        }
        group.addTask {
          do throws(BatchError) {
            return .committed(chunk, .success(try await processor.commit(value, at: chunk)))
          } catch {
            return .committed(chunk, .failure(error))
          }
        }
      case .discard(let chunk): prepared[chunk] = nil
      case .end(let ending): self.ending = ending
      }
    }
  }
}
