import BatchRuns
package import BatchIdentifiers
import BatchPlatform
import Dispatch
import SystemPackage

/// The running programs of a command transform: as many as are needed at once, up to a limit.
package final class ChildPool: Sendable {
  private struct State {
    var command: ChildProcess.Command
    var idle: [ChildProcess] = []
    var messages: [String] = []
    /// The lines of programs reported as messages, their bytes, and the lines that are only
    /// counted.
    var told = (lines: 0, bytes: 0, dropped: 0)
    /// Limits how many programs may be lent at once.
    var places: DispatchSemaphore?
    /// When each lent program last answered.
    var heard: [pid_t: Lock<ContinuousClock.Instant>] = [:]
  }

  private static let lineLimit = 200

  private let name: String
  private let state: Lock<State>

  init(_ command: ChildProcess.Command) {
    name = command.executable.lastComponent?.string ?? "command"
    state = Lock(State(command: command))
  }

  /// Starts the first program unless there are no rows, so that a failure to start is reported
  /// before anything is written.
  package func start(
    environment: [String: String],
    atMost count: Int,
    hasRows: Bool
  ) throws(BatchError) {
    // A program that ends while it is written to must not end this process.
    signal(SIGPIPE, SIG_IGN)
    let command = state.withLock { state in
      state.command.environment = environment
      state.places = DispatchSemaphore(value: count)
      return state.command
    }
    guard hasRows else { return }
    let child = try ChildProcess(command)
    state.withLock { $0.idle.append(child) }
  }

  /// Lends an idle program, waiting for one if necessary.
  ///
  /// If `body` ends the program or throws, the next program is new.
  func withChild<Result>(
    _ body: (ChildProcess) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    // Blocks the thread of a context, which has nothing else to do.
    let places = state.withLock { $0.places }
    places?.wait()
    defer { places?.signal() }
    let child = try idleChild()
    child.heard.withLock { $0 = .now }
    state.withLock { $0.heard[child.identifier] = child.heard }
    defer { state.withLock { $0.heard[child.identifier] = nil } }
    do {
      let result = try body(child)
      // Once it is idle, another thread may use it.
      keep(child.takeErrors(), of: child)
      if !child.hasEnded { state.withLock { $0.idle.append(child) } }
      return result
    } catch {
      child.end()
      keep(child.takeErrors(), of: child)
      throw error
    }
  }

  private func idleChild() throws(BatchError) -> ChildProcess {
    while true {
      let (idle, command) = state.withLock { ($0.idle.popLast(), $0.command) }
      guard let idle else { return try ChildProcess(command) }
      guard let surplus = idle.harmlessSurplus() else { return idle }
      idle.end()
      keep(idle.takeErrors(), of: idle)
      keep("\(surplus); it is replaced", of: idle)
    }
  }

  /// Keeps the first lines of a run's programs, and counts the others.
  private func keep(_ taken: StandardErrorLines.Taken, of child: ChildProcess) {
    state.withLock { state in
      var dropped = taken.dropped
      for line in taken.lines {
        let bytes = state.told.bytes + line.utf8.count + 1
        guard state.told.lines < Self.lineLimit, bytes <= StandardErrorLines.limit else {
          dropped += 1
          continue
        }
        state.told.lines += 1
        state.told.bytes = bytes
        state.messages.append("\(name)[\(child.identifier)]: \(line)")
      }
      if dropped > 0, state.told.dropped == 0 {
        state.messages.append("\(name): further lines on standard error are counted, not shown")
      }
      state.told.dropped += dropped
    }
  }

  private func keep(_ message: String, of child: ChildProcess) {
    state.withLock { $0.messages.append("\(name)[\(child.identifier)]: \(message)") }
  }

  /// The programs' standard error since the last call; each line begins with program and process.
  package func takeMessages() -> [String] {
    state.withLock { state in
      defer { state.messages.removeAll() }
      return state.messages
    }
  }

  /// The program that has been silent for longest, if it has been for at least this time.
  package func silence(of least: Duration) -> String? {
    let heard = state.withLock { state in
      state.heard.map { (process: $0.key, time: $0.value.withLock { time in time }) }
    }
    guard let (identifier, time) = heard.min(by: { $0.time < $1.time }) else { return nil }
    let silence = time.duration(to: .now)
    guard silence >= least else { return nil }
    return "\(name) (process \(identifier)), silent for \(silence.components.seconds) s"
  }

  /// Ends the programs, and kills those that do not end within two seconds.
  ///
  /// - Throws: `BatchError` of code `commandUnreliable` if a program has written unrequested
  ///   answers.
  package func close() throws(BatchError) {
    let children = state.withLock { state in
      defer { state.idle.removeAll() }
      return state.idle
    }
    // All inputs are closed first, and then each program gets the remaining time.
    for child in children { child.closeInput() }
    let deadline = ContinuousClock.now + (RunStop.isOver() ? .zero : .seconds(2))
    var failure: BatchError?
    for child in children {
      do throws(BatchError) {
        let surplus = try child.close(by: deadline)
        keep(child.takeErrors(), of: child)
        if let surplus { keep(surplus, of: child) }
      } catch {
        keep(child.takeErrors(), of: child)
        failure = error
      }
    }
    state.withLock { state in
      guard state.told.dropped > 0 else { return }
      state.messages.append("\(name): \(state.told.dropped.grouped) further lines are not shown")
      state.told.dropped = 0
    }
    if let failure { throw failure }
  }
}
