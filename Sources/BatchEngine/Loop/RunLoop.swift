package import BatchIdentifiers
import SystemPackage

/// Performs what a ``RunStateMachine`` decides: tasks for workers and writer, and the answers back.
package struct RunLoop<Processor: ChunkProcessor> {
  /// What a loop needs beside its chunks.
  package struct Settings {
    package var policy: RunPolicy
    /// Where the run keeps its files.
    package var files: RunFiles
    /// When the run stops by itself.
    package var deadline: ContinuousClock.Instant?
    /// What commits the chunks, whose log is emptied when it has grown too long; nil for a run that writes
    /// to no store.
    package var writer: (any ChunkWriter)?
    package var stopRequests: AsyncStream<Void>
    /// How long chunks in flight have to finish after a request to stop.
    package var grace: Duration

    package init(
      policy: RunPolicy,
      files: RunFiles,
      deadline: ContinuousClock.Instant? = nil,
      writer: (any ChunkWriter)? = nil,
      stopRequests: AsyncStream<Void>,
      grace: Duration = .seconds(5)
    ) {
      self.policy = policy
      self.files = files
      self.deadline = deadline
      self.writer = writer
      self.stopRequests = stopRequests
      self.grace = grace
    }
  }

  /// What happens in a run.
  package enum Event {
    case committed(Range<Int>, Outcomes)
    case retrying(ChunkRetry)
    case held(RunThrottle.Hold)
    case released
    case message(String)
    /// Nothing but that time goes by.
    case looked
  }

  private typealias Prepared = Result<PreparedChunk<Processor.Prepared>, BatchError>

  private enum Answer: Sendable {
    case prepared(Range<Int>, worker: Int, Duration, Prepared)
    case committed(Range<Int>, Result<Commit, BatchError>)
    case rested(Range<Int>)
    case look
    case tick
    case emptiedLog(Result<Int, BatchError>)
    case stop
    case outOfTime
  }

  private let processor: Processor
  private let workers: [Processor.Worker]
  private let settings: Settings
  private let backoff: Backoff
  private let grace: StopGrace
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant
  private var machine: RunStateMachine
  private var prepared: [Range<Int>: Processor.Prepared] = [:]
  /// The errors of chunks that are tried again, by their first positions.
  private var errors: [Int: BatchError] = [:]
  private var throttle: RunThrottle
  private var control: ControlFile
  private var asked = RunControl()
  private var held: RunThrottle.Hold?
  /// Whether a task will say when a pace lets the run go on, which is before the next tick.
  private var willLook = false
  /// Whether the log may be emptied: once each time that its length was looked at.
  private var mayEmptyLog = false
  /// What has happened and was not told yet.
  private var events: [Event] = []
  private var ending: RunStateMachine.Ending?
  /// The first error, which ended the run.
  package private(set) var failure: BatchError?
  /// Why the run was stopped, if not by a request to ``BatchRun``.
  package private(set) var stopReason: String?

  /// A loop over the remaining positions of a list.
  package init(
    remaining: [Range<Int>],
    sizing: ChunkSizing,
    workers: [Processor.Worker],
    processor: Processor,
    settings: Settings
  ) {
    self.processor = processor
    self.workers = workers
    self.settings = settings
    start = clock.now
    throttle = RunThrottle(settings.policy.throttle, logRemedy: settings.writer?.logRemedy ?? "")
    control = ControlFile(of: settings.files)
    backoff = Backoff(settings.policy.retry)
    grace = StopGrace(settings.grace)
    var limits = RunStateMachine.Limits(
      workers: workers.count,
      inOrder: processor.inOrder,
      retries: backoff.limit
    )
    if throttle.setsPace { limits.committing = 1 }
    machine = RunStateMachine(remaining: remaining, sizing: sizing, limits: limits)
  }

  /// Runs until every position is done, the run is stopped, or a chunk fails.
  ///
  /// - Parameter observe: Told what happens; an error from it fails the run.
  /// - Returns: How the run ended.
  package mutating func run(
    observe: (Event) async throws(BatchError) -> Void
  ) async -> RunStateMachine.Ending {
    let watch = grace.watch(settings.writer, workers, obeying: settings.files)
    let ending = await carryOut(observe: observe)
    // So that nothing interrupts whoever records how the run ended.
    watch.cancel()
    await watch.value
    return ending
  }

  private mutating func carryOut(
    observe: (Event) async throws(BatchError) -> Void
  ) async -> RunStateMachine.Ending {
    await withTaskGroup(of: Answer.self) { group in
      listen(in: &group)
      tick(in: &group)
      regulate(in: &group)
      perform(machine.start(), in: &group)
      while true {
        // The writer goes on while what happened is accounted for.
        let happened = events
        events.removeAll()
        for event in happened {
          do throws(BatchError) {
            try await observe(event)
          } catch {
            if !grace.excuses(error) { fail(error, in: &group) }
          }
        }
        guard ending == nil, let answer = await group.next() else { break }
        hear(answer, in: &group)
      }
      group.cancelAll()
      return ending ?? .stopped
    }
  }

  private func listen(in group: inout TaskGroup<Answer>) {
    let stopRequests = settings.stopRequests
    group.addTask { [grace] in
      // Ends with the first request, or when this task is cancelled.
      for await _ in stopRequests { break }
      grace.begin()
      return .stop
    }
    guard let deadline = settings.deadline else { return }
    group.addTask { [grace, runtime = settings.policy.limits.runtime] in
      // Cancelled, the run is told to stop, and not by its time.
      guard (try? await Task.sleep(until: deadline, clock: .continuous)) != nil else {
        return .stop
      }
      grace.begin(atLeast: runtime ?? .zero)
      return .outOfTime
    }
  }

  /// Has the run look around in a moment, whatever goes on then: a chunk may take long.
  private func tick(in group: inout TaskGroup<Answer>) {
    group.addTask {
      try? await Task.sleep(for: RunThrottle.lookInterval)
      return .tick
    }
  }

  private mutating func hear(_ answer: Answer, in group: inout TaskGroup<Answer>) {
    switch answer {
    case .prepared(let chunk, let worker, let duration, .success(let value)):
      let end = chunk.lowerBound + value.count
      prepared[chunk.lowerBound..<end] = value.content
      regulate(in: &group)
      let actions = machine.prepared(
        chunk,
        worker: worker,
        upTo: end,
        holding: value.byteCount,
        took: duration
      )
      perform(actions, in: &group)
    case .prepared(let chunk, let worker, _, .failure(let error)):
      note(error, of: chunk)
      let isTransient = error.isTransient || grace.excuses(error)
      let actions = machine.failedToPrepare(chunk, worker: worker, isTransient: isTransient)
      settle(chunk, actions, in: &group)
    case .committed(let chunk, .success(let commit)):
      events.append(.committed(chunk, commit.outcomes))
      errors[chunk.lowerBound] = nil
      throttle.committed(chunk.count, took: commit.duration, at: start.duration(to: clock.now))
      throttle.logBytes = commit.logBytes
      regulate(in: &group)
      perform(machine.committed(chunk, took: commit.duration), in: &group)
    case .committed(let chunk, .failure(let error)):
      note(error, of: chunk)
      let isTransient = error.isTransient || grace.excuses(error)
      settle(chunk, machine.failedToCommit(chunk, isTransient: isTransient), in: &group)
    case .rested(let chunk): perform(machine.rested(chunk), in: &group)
    case .look:
      willLook = false
      regulate(in: &group)
    case .tick:
      mayEmptyLog = true
      regulate(in: &group)
      events.append(.looked)
      tick(in: &group)
    case .emptiedLog(.success(let bytes)):
      throttle.logBytes = bytes
      regulate(in: &group)
    case .emptiedLog(.failure(let error)):
      if !grace.excuses(error) { fail(error, in: &group) }
    case .stop: perform(machine.stop(), in: &group)
    case .outOfTime:
      stopReason = stopReason ?? "the time of limits.runtime is over"
      perform(machine.stop(), in: &group)
    }
    emptyLogIfQuiet(in: &group)
  }

  // MARK: Failures

  private mutating func fail(_ error: BatchError, in group: inout TaskGroup<Answer>) {
    failure = failure ?? error
    perform(machine.fail(), in: &group)
  }

  private mutating func note(_ error: BatchError, of chunk: Range<Int>) {
    var error = error
    let positions = "positions \(chunk.lowerBound) to \(chunk.upperBound - 1)"
    error.place = error.place.map { "\($0): \(positions)" } ?? positions
    errors[chunk.lowerBound] = error
  }

  /// Performs what follows from a failure, and keeps the error if it is what the run fails of.
  private mutating func settle(
    _ chunk: Range<Int>,
    _ actions: [RunStateMachine.Action],
    in group: inout TaskGroup<Answer>
  ) {
    if machine.hasFailed, failure == nil {
      failure = errors[chunk.lowerBound]
      let tries = machine.tries(of: chunk)
      if tries > 1 { failure?.message += " (tried \(tries) times)" }
    }
    perform(actions, in: &group)
  }

  // MARK: The throttle

  /// Holds the run or lets it go on, as the throttle has it now.
  private mutating func regulate(in group: inout TaskGroup<Answer>) {
    if let asked = control.look() { obey(asked, in: &group) }
    if let complaint = control.takeComplaint() { events.append(.message(complaint)) }
    let now = start.duration(to: clock.now)
    var conditions = ThrottleProbe(throttle.throttle, settings.files.store).look()
    conditions.isPaused = asked.isPaused
    guard let hold = throttle.hold(at: now, conditions) else {
      guard held != nil else { return }
      held = nil
      events.append(.released)
      perform(machine.release(), in: &group)
      return
    }
    if hold.cause != held?.cause { mayEmptyLog = true }
    if hold.reason != held?.reason { events.append(.held(hold)) }
    held = hold
    machine.hold()
    guard !willLook, hold.duration < RunThrottle.lookInterval else { return }
    willLook = true
    group.addTask {
      try? await Task.sleep(for: hold.duration)
      return .look
    }
  }

  /// Does what an operator asks for.
  private mutating func obey(_ control: RunControl, in group: inout TaskGroup<Answer>) {
    if control.isCancelled, !asked.isCancelled {
      stopReason = stopReason ?? "batch cancel"
      grace.begin()
      perform(machine.stop(), in: &group)
    }
    // Whoever asked has checked the settings; a file made by hand is not obeyed in this.
    if control.settings != asked.settings,
      let policy = try? settings.policy.adjusted(by: control.settings)
    {
      throttle.throttle = policy.throttle
      let unpaced = RunStateMachine.Limits(workers: workers.count, inOrder: processor.inOrder)
      machine.tune(
        ChunkSizing(
          policy,
          preparedWithin: processor.patience,
          startingAt: machine.chunkSize,
          bytes: machine.chunkBytes
        ),
        committing: throttle.setsPace ? 1 : unpaced.committing
      )
    }
    asked = control
  }

  /// Empties the log when it is what holds the run and none of the run's readers is in the way.
  private mutating func emptyLogIfQuiet(in group: inout TaskGroup<Answer>) {
    guard held?.cause == .maximumWAL, mayEmptyLog, machine.isQuiet, ending == nil,
      let writer = settings.writer
    else { return }
    mayEmptyLog = false
    group.addTask {
      do throws(BatchError) {
        return .emptiedLog(.success(try await writer.emptyLog()))
      } catch {
        return .emptiedLog(.failure(error))
      }
    }
  }

  // MARK: Actions

  private mutating func perform(
    _ actions: [RunStateMachine.Action],
    in group: inout TaskGroup<Answer>
  ) {
    let processor = processor
    for action in actions {
      switch action {
      case .prepare(let chunk, let worker):
        let context = workers[worker]
        group.addTask { [clock] in
          let start = clock.now
          let result: Prepared
          do throws(BatchError) {
            result = .success(try await processor.prepare(chunk, in: context))
          } catch {
            result = .failure(error)
          }
          return .prepared(chunk, worker: worker, start.duration(to: clock.now), result)
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
      case .rest(let chunk, let attempt): rest(chunk, before: attempt, in: &group)
      case .discard(let chunk): prepared[chunk] = nil
      case .end(let ending): self.ending = ending
      }
    }
  }

  private mutating func rest(
    _ chunk: Range<Int>,
    before attempt: Int,
    in group: inout TaskGroup<Answer>
  ) {
    guard let error = errors[chunk.lowerBound] else {
      preconditionFailure("a chunk rests that has not failed")
    }
    var generator = SystemRandomNumberGenerator()
    let delay = backoff.delay(before: attempt, using: &generator)
    events.append(
      .retrying(
        ChunkRetry(
          positions: chunk,
          error: error,
          attempt: attempt,
          limit: backoff.limit,
          delay: delay
        )
      )
    )
    group.addTask {
      // Cancelled when the run ends, which then need not wait.
      try? await Task.sleep(for: delay)
      return .rested(chunk)
    }
  }
}
