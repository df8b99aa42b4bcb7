import BatchIdentifiers
import BatchStore

/// Performs what a ``RunStateMachine`` decides: tasks for workers and writer, and the answers back.
struct RunLoop<Processor: ChunkProcessor> {
  private enum Answer: Sendable {
    case prepared(Range<Int>, worker: Int, Result<Processor.Prepared, BatchError>)
    case committed(Range<Int>, Result<Commit, BatchError>)
    case stop
  }

  private let processor: Processor
  private let workers: [StoreConnection]
  private let stopRequests: AsyncStream<Void>
  private var machine: RunStateMachine
  private var prepared: [Range<Int>: Processor.Prepared] = [:]
  private var ending: RunStateMachine.Ending?
  /// The first error, which ended the run.
  private(set) var failure: BatchError?

  /// A loop over the remaining positions of a list.
  init(
    remaining: [Range<Int>],
    sizing: ChunkSizing,
    workers: [StoreConnection],
    processor: Processor,
    stopRequests: AsyncStream<Void>
  ) {
    self.processor = processor
    self.workers = workers
    self.stopRequests = stopRequests
    machine = RunStateMachine(
      remaining: remaining,
      sizing: sizing,
      limits: .init(workers: workers.count, inOrder: processor.inOrder)
    )
  }

  /// Runs until every position is done, the run is stopped, or a chunk fails.
  ///
  /// - Parameter onCommit: Called after each committed chunk; an error from it fails the run.
  /// - Returns: How the run ended.
  mutating func run(
    onCommit: (Range<Int>, Outcomes) async throws(BatchError) -> Void
  ) async -> RunStateMachine.Ending {
    await withTaskGroup(of: Answer.self) { group in
      let stopRequests = stopRequests
      group.addTask {
        // Ends with the first request, or when this task is cancelled.
        for await _ in stopRequests { break }
        return .stop
      }
      perform(machine.start(), in: &group)
      while ending == nil, let answer = await group.next() {
        switch answer {
        case .prepared(let chunk, let worker, .success(let value)):
          prepared[chunk] = value
          perform(machine.prepared(chunk, worker: worker), in: &group)
        case .prepared(let chunk, let worker, .failure(let error)):
          note(error, chunk)
          perform(machine.failedToPrepare(chunk, worker: worker), in: &group)
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
          note(error, chunk)
          perform(machine.failedToCommit(chunk), in: &group)
        case .stop:
          perform(machine.stop(), in: &group)
        }
      }
      group.cancelAll()
      return ending ?? .stopped
    }
  }

  private mutating func note(_ error: BatchError, _ chunk: Range<Int>) {
    guard failure == nil else { return }
    failure = error
    let positions = "positions \(chunk.lowerBound) to \(chunk.upperBound - 1)"
    failure?.place = error.place.map { "\($0): \(positions)" } ?? positions
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
