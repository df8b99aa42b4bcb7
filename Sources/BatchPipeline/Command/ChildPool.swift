import BatchIdentifiers
import Dispatch
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The running programs of a command transform: as many as are needed at once, up to a number.
package final class ChildPool: Sendable {
  private struct State {
    var command: ChildProcess.Command
    var idle: [ChildProcess] = []
    var messages: [String] = []
    /// How many more may be lent.
    var places: DispatchSemaphore?
  }

  /// The most lines of standard error that wait to be told.
  private static let messageLimit = 1000

  private let name: String
  private let state: Lock<State>

  /// A pool of no programs yet.
  init(_ command: ChildProcess.Command) {
    name = command.executable.lastComponent?.string ?? "command"
    state = Lock(State(command: command))
  }

  /// Starts the first program, so that one that cannot be started is known before anything is
  /// written, unless there is nothing for it to do.
  func start(
    environment: [String: String],
    atMost count: Int,
    hasRows: Bool
  ) throws(BatchError) {
    // A program that ends while it is written to must not end this one.
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

  /// Lends a program that nobody else uses, as soon as there may be one; if `body` throws it is ended,
  /// and the next one is new.
  func withChild<Result>(
    _ body: (ChildProcess) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    // On the thread of a context, which has nothing else to do.
    let places = state.withLock { $0.places }
    places?.wait()
    defer { places?.signal() }
    let child = try idleChild()
    do {
      let result = try body(child)
      // Once it is idle it is another thread's.
      keep(child.takeErrors(), of: child)
      state.withLock { $0.idle.append(child) }
      return result
    } catch {
      child.end()
      keep(child.takeErrors(), of: child)
      throw error
    }
  }

  /// A program that is asked nothing, or a new one.
  private func idleChild() throws(BatchError) -> ChildProcess {
    while true {
      let (idle, command) = state.withLock { ($0.idle.popLast(), $0.command) }
      guard let idle else { return try ChildProcess(command) }
      guard let surplus = idle.harmlessSurplus() else { return idle }
      idle.end()
      keep(idle.takeErrors() + ["\(surplus); it is replaced"], of: idle)
    }
  }

  private func keep(_ lines: [String], of child: ChildProcess) {
    guard !lines.isEmpty else { return }
    state.withLock { state in
      let room = Self.messageLimit - state.messages.count
      state.messages += lines.prefix(room).map { "\(name)[\(child.identifier)]: \($0)" }
    }
  }

  /// What the programs have written to standard error since the last call, each line with the
  /// program and its process before it.
  func takeMessages() -> [String] {
    state.withLock { state in
      defer { state.messages.removeAll() }
      return state.messages
    }
  }

  /// Ends the programs; those that do not end by themselves are killed.
  ///
  /// - Throws: `BatchError` of code `commandUnreliable` if one has answered what nobody had asked.
  func close() throws(BatchError) {
    let children = state.withLock { state in
      defer { state.idle.removeAll() }
      return state.idle
    }
    var failure: BatchError?
    for child in children {
      do throws(BatchError) {
        let surplus = try child.close()
        keep(child.takeErrors() + (surplus.map { [$0] } ?? []), of: child)
      } catch {
        keep(child.takeErrors(), of: child)
        failure = error
      }
    }
    if let failure { throw failure }
  }
}
