package import BatchIdentifiers
import SystemPackage

/// Performs the effects of a ``RunLogic`` with tasks for workers and writer, and returns answers.
package struct RunLoop<Processor: ChunkProcessor> {
  package struct Settings {
    package var policy: RunPolicy
    package var files: RunFiles
    package var requests: any RunRequests
    /// When the time limit of the run ends.
    package var deadline: ContinuousClock.Instant?
    /// The source of further positions during the run; nil if all are known at the start.
    package var spans: (any SpanSource)?
    /// Whether each worker commits its own chunks; otherwise one writer commits all.
    package var workersCommit: Bool
    /// Commits the chunks and empties its log if it is too long; nil for a run that writes to no
    /// store.
    package var writer: (any ChunkWriter)?
    /// Adds the store's own conditions to those of the throttle; nil if the store has none.
    package var addStoreConditions: (@Sendable (inout RunThrottle.Conditions) -> Void)?
    package var stopRequests: AsyncStream<Void>
    /// How long chunks in flight may take to finish after a request to stop.
    package var grace: Duration
    package var host: RunEnvironment

    package init(
      policy: RunPolicy,
      files: RunFiles,
      requests: (any RunRequests)? = nil,
      deadline: ContinuousClock.Instant? = nil,
      spans: (any SpanSource)? = nil,
      workersCommit: Bool = false,
      writer: (any ChunkWriter)? = nil,
      addStoreConditions: (@Sendable (inout RunThrottle.Conditions) -> Void)? = nil,
      stopRequests: AsyncStream<Void>,
      grace: Duration = RunStop.grace,
      host: RunEnvironment = RunEnvironment()
    ) {
      self.policy = policy
      self.files = files
      self.requests = requests ?? ControlFile(of: files)
      self.deadline = deadline
      self.spans = spans
      self.workersCommit = workersCommit
      self.writer = writer
      self.addStoreConditions = addStoreConditions
      self.stopRequests = stopRequests
      self.grace = grace
      self.host = host
    }
  }

  package typealias Event = RunLogic.Event

  /// An answer, with the content that a worker has prepared.
  private typealias Reply = (answer: RunLogic.Answer, content: Processor.Prepared?)

  private let processor: Processor
  private let workers: [Processor.Worker]
  private let settings: Settings
  private let grace: StopGrace
  /// Whether tasks are cancelled because the loop is over, and not because the run is.
  private let hasEnded = Lock(false)
  private let start: ContinuousClock.Instant
  private var logic: RunLogic
  private var prepared: [Range<Int>: Processor.Prepared] = [:]
  /// Partial results of chunks that will be retried.
  private var postponed: [Range<Int>: Processor.Prepared] = [:]
  private var control: any RunRequests
  private var asked = RunControl()
  /// Includes the operator's changes.
  private var policy: RunPolicy
  private var events: [Event] = []
  private var ending: RunStateMachine.Ending?

  package var failure: BatchError? { logic.failure }
  /// Why the run was stopped, if not by a request to ``BatchRun``.
  package var stopReason: String? { logic.stopReason }

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
    policy = settings.policy
    start = settings.host.now()
    control = settings.requests
    grace = StopGrace(settings.grace, on: settings.host)
    logic = RunLogic(
      remaining: remaining,
      sizing: sizing,
      policy: settings.policy,
      setting: .init(
        workers: workers.count,
        inOrder: processor.inOrder,
        handlerTimeLimit: processor.handlerTimeLimit,
        logRemedy: settings.writer?.logRemedy,
        units: processor.units,
        workersCommit: settings.workersCommit,
        isGranted: settings.spans != nil
      ),
      generator: settings.host.generator
    )
  }

  /// Runs until every position is done, the run is stopped, or a chunk fails.
  ///
  /// `observe` receives the events; an error that it throws fails the run.
  package mutating func run(
    observe: (Event) async throws(BatchError) -> Void
  ) async -> RunStateMachine.Ending {
    let watch = grace.watch(settings.writer, workers, settings.spans, obeying: settings.requests)
    let ending = await carryOut(observe: observe)
    // It must not interrupt anything while the end of the run is recorded.
    watch.cancel()
    await watch.value
    return ending
  }

  private mutating func carryOut(
    observe: (Event) async throws(BatchError) -> Void
  ) async -> RunStateMachine.Ending {
    await withTaskGroup(of: Reply.self) { group in
      listen(in: &group)
      perform(logic.begin(at: look()), in: &group)
      while true {
        // The writer continues while these events are handled.
        let happened = events
        events.removeAll()
        for event in happened {
          do throws(BatchError) {
            try await observe(event)
          } catch {
            perform(logic.hear(.failed(error), at: look()), in: &group)
          }
        }
        guard ending == nil, let reply = await group.next() else { break }
        if let content = reply.content {
          switch reply.answer {
          case .prepared(let chunk, _, let end, _, _): prepared[chunk.lowerBound..<end] = content
          case .failedToPrepare(let chunk, _, _, _): postponed[chunk] = content
          default: break
          }
        }
        perform(logic.hear(reply.answer, at: look()), in: &group)
      }
      hasEnded.withLock { $0 = true }
      group.cancelAll()
      return ending ?? .stopped
    }
  }

  private func listen(in group: inout TaskGroup<Reply>) {
    let stopRequests = settings.stopRequests
    group.addTask { [grace, hasEnded] in
      // The loop ends with the first request, or when this task is cancelled.
      for await _ in stopRequests { break }
      // The end of this loop is not that of the run, which may go on after its canary.
      if !hasEnded.withLock(\.self) { grace.begin() }
      return (.stop, nil)
    }
    guard let deadline = settings.deadline else { return }
    group.addTask { [grace, host = settings.host] in
      await host.sleep(host.now().duration(to: deadline))
      // A cancelled task is a requested stop, not the end of the time limit.
      if Task.isCancelled { return (.stop, nil) }
      grace.begin()
      return (.outOfTime, nil)
    }
  }

  private mutating func look() -> RunLogic.Moment {
    if let request = control.look() {
      // The command has validated the settings; a file edited by hand may have invalid ones, which
      // are ignored.
      if request.settings != asked.settings,
        let adjusted = try? settings.policy.adjusted(by: request.settings)
      {
        policy = adjusted
      }
      if let actions = request.actions { events.append(.asked(actions)) }
      asked = request
    }
    var moment = RunLogic.Moment(now: start.duration(to: settings.host.now()), policy: policy)
    moment.conditions = ThrottleProbe(policy.throttle, settings.files.store).look()
    moment.conditions.isPaused = asked.isPaused
    settings.addStoreConditions?(&moment.conditions)
    moment.isCancelled = asked.isCancelled
    moment.isGraceOver = grace.isOver
    moment.complaint = control.takeComplaint()
    return moment
  }

  private mutating func perform(_ effects: [RunLogic.Effect], in group: inout TaskGroup<Reply>) {
    for effect in effects {
      switch effect {
      case .prepare(let chunk, let worker, let isLastTry):
        let earlier = postponed.removeValue(forKey: chunk)
        prepare(chunk, worker, Attempt(after: earlier, isLast: isLastTry), in: &group)
      case .commit(let chunk): commit(chunk, in: &group)
      case .discard(let chunk):
        prepared[chunk] = nil
        postponed[chunk] = nil
      case .claim(let own): claim(besides: own, in: &group)
      case .close(let span): close(span, in: &group)
      case .answer(let answer, let delay):
        group.addTask { [host = settings.host] in
          // Cancelled at the end of the run, so that the end need not wait.
          await host.sleep(delay)
          return (answer, nil)
        }
      case .emptyLog: emptyLog(in: &group)
      case .beginGrace: grace.begin()
      case .tell(let event): events.append(event)
      case .end(let ending): self.ending = ending
      }
    }
  }

  private func prepare(
    _ chunk: Range<Int>,
    _ worker: Int,
    _ attempt: Attempt<Processor.Prepared>,
    in group: inout TaskGroup<Reply>
  ) {
    let context = workers[worker]
    group.addTask { [processor, host = settings.host] in
      let start = host.now()
      do throws(BatchError) {
        let value = try await processor.prepare(chunk, attempt, in: context)
        if let error = value.postponement {
          let answer = RunLogic.Answer.failedToPrepare(
            chunk,
            worker: worker,
            error,
            holding: value.byteCount
          )
          return (answer, value.content)
        }
        let answer = RunLogic.Answer.prepared(
          chunk,
          worker: worker,
          upTo: chunk.lowerBound + value.count,
          holding: value.byteCount,
          took: start.duration(to: host.now())
        )
        return (answer, value.content)
      } catch {
        return (.failedToPrepare(chunk, worker: worker, error, holding: 0), nil)
      }
    }
  }

  private mutating func commit(_ chunk: Range<Int>, in group: inout TaskGroup<Reply>) {
    guard let value = prepared.removeValue(forKey: chunk) else {
      preconditionFailure("a committed chunk was not prepared")
    }
    group.addTask { [processor] in
      do throws(BatchError) {
        return (.committed(chunk, try await processor.commit(value, at: chunk)), nil)
      } catch {
        return (.failedToCommit(chunk, error), nil)
      }
    }
  }

  private func claim(besides own: [Range<Int>], in group: inout TaskGroup<Reply>) {
    guard let spans = settings.spans else { preconditionFailure("no source of spans") }
    group.addTask {
      do throws(BatchError) {
        return (.claimed(try await spans.claim(besides: own)), nil)
      } catch {
        return (.failedToClaim(error), nil)
      }
    }
  }

  private func close(_ span: Range<Int>, in group: inout TaskGroup<Reply>) {
    guard let spans = settings.spans else { preconditionFailure("no source of spans") }
    group.addTask {
      do throws(BatchError) {
        try await spans.close(span)
        return (.closed(span), nil)
      } catch {
        return (.failedToClose(span, error), nil)
      }
    }
  }

  private func emptyLog(in group: inout TaskGroup<Reply>) {
    guard let writer = settings.writer else { preconditionFailure("no writer of a log") }
    group.addTask {
      do throws(BatchError) {
        return (.emptiedLog(try await writer.emptyLog()), nil)
      } catch {
        return (.failed(error), nil)
      }
    }
  }
}
