import SystemPackage
package import BatchRuns
package import BatchIdentifiers

/// Runs the programs that are notified of a run, one at a time, on a separate thread.
///
/// A problem of a program becomes a message, and the run continues.
package final class RunHooks: RunNotifier {
  private struct State {
    var messages: [String] = []
    /// Whether a program is waiting or running in the background.
    var isBusy = false
    var last: Task<Void, Never>?
  }

  /// A program is killed after this time.
  package static let timeLimit = Duration.seconds(60)
  private static let messageLimit = 100

  private let commands: [Job.Hooks.Event: ChildProcess.Command]
  private let cause: any RunCause
  private let parameters: ParameterValues
  private let timeLimit: Duration
  private let runner = HookRunner()
  private let state = Lock(State())

  package init(
    _ cause: any RunCause,
    parameters: ParameterValues,
    for events: [Job.Hooks.Event] = Job.Hooks.Event.allCases,
    timeLimit: Duration = timeLimit
  ) throws(BatchError) {
    var commands: [Job.Hooks.Event: ChildProcess.Command] = [:]
    for event in events {
      guard let arguments = cause.hooks.commands[event] else { continue }
      do throws(BatchError) {
        commands[event] = try ChildProcess.Command(arguments, in: cause.baseDirectory)
      } catch {
        throw error.located(at: cause.place(of: JobPath("hooks", event.rawValue)))
      }
    }
    self.commands = commands
    self.cause = cause
    self.parameters = parameters
    self.timeLimit = timeLimit
  }

  /// Runs the program for an event, if there is one, and waits for its end.
  ///
  /// `variables` override those that come from the summary.
  package func run(
    _ event: Job.Hooks.Event,
    _ summary: RunSummary,
    telling variables: [String: String] = [:]
  ) async {
    guard let command = commands[event] else { return }
    await runner.run { self.perform(event, command, summary, variables) }
  }

  package func begin(_ summary: RunSummary, afterKill isAfterKill: Bool) async {
    if isAfterKill { await run(.onKill, summary, telling: ["BATCH_STATE": "killed"]) }
    await run(.onStart, summary)
  }

  /// Runs the program for the end of a run, if there is one, and waits for its end.
  package func end(_ summary: RunSummary) async {
    let event: Job.Hooks.Event
    switch summary.state {
    case .completed, .completedWithFailures: event = .onFinish
    case .failed: event = .onFailure
    case .stopped: event = summary.stopReason == RunSummary.cancellation ? .onCancel : .onStop
    case .running, .throttled, .paused: return
    }
    let status = ExitStatus(of: summary).rawValue
    await run(event, summary, telling: ["BATCH_EXIT_STATUS": String(status)])
  }

  /// Starts the program for a hold in the background, unless one is already running.
  package func hold(_ summary: RunSummary) {
    guard let command = commands[.onThrottle] else { return }
    state.withLock { state in
      guard !state.isBusy else { return }
      state.isBusy = true
      state.last = Task {
        await runner.run { self.perform(.onThrottle, command, summary) }
        self.state.withLock { $0.isBusy = false }
      }
    }
  }

  package func settle() async {
    await state.withLock { $0.last }?.value
  }

  package func takeMessages() -> [String] {
    state.withLock { state in
      defer { state.messages.removeAll() }
      return state.messages
    }
  }

  private func perform(
    _ event: Job.Hooks.Event,
    _ command: ChildProcess.Command,
    _ summary: RunSummary,
    _ variables: [String: String] = [:]
  ) {
    var command = command
    command.environment = CommandHandler.environment(
      of: cause,
      run: summary.run,
      parameters: parameters.sqlValues
    )
    .merging(summary.variables) { $1 }
    .merging(["BATCH_HOOK": event.rawValue]) { $1 }
    .merging(variables) { $1 }
    let name = "hooks.\(event.rawValue)"
    do throws(BatchError) {
      let child = try ChildProcess(command)
      let problem = child.complete(within: timeLimit)
      let errors = child.takeErrors()
      keep(errors.lines.map { "\(name)[\(child.identifier)]: \($0)" })
      if errors.dropped > 0 {
        keep(["\(name): \(errors.dropped.grouped) further lines are not shown"])
      }
      if let problem { keep(["\(name): the program \(problem); the run continues without it"]) }
    } catch {
      keep(["\(name): \(error.message); the run continues without it"])
    }
  }

  private func keep(_ messages: [String]) {
    state.withLock { state in
      state.messages += messages.prefix(Self.messageLimit - state.messages.count)
    }
  }
}

/// The thread that waits for the programs; without it, the caller waits.
private actor HookRunner {
  private let executor = ThreadExecutor(label: "batch.hooks")

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  package func run(_ body: @Sendable () -> Void) { body() }
}

extension RunSummary {
  /// The variables that describe the state of the run to a hook, in addition to those of a command.
  package var variables: [String: String] {
    var variables = [
      "BATCH_STATE": state.rawValue, "BATCH_TOTAL": String(total), "BATCH_DONE": String(done),
      "BATCH_FAILED": String(outcomes.failed),
      "BATCH_ELAPSED_SECONDS": String((elapsedSeconds * 1000).rounded() / 1000),
    ]
    // The program starts in the job's folder, which may not be that of this process.
    if !checkpoint.isEmpty {
      variables["BATCH_CHECKPOINT"] = FileSystem.absolute(FilePath(checkpoint)).string
    }
    variables["BATCH_OUTPUT"] = output.map { FileSystem.absolute(FilePath($0)).string }
    variables["BATCH_THROTTLE"] = throttle
    variables["BATCH_STOP_REASON"] = stopReason
    // A variable ends at U+0000.
    variables["BATCH_ERROR"] = error?.replacing("\0", with: " ")
    return variables
  }
}
