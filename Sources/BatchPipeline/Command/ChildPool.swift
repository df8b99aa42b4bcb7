import BatchIdentifiers
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The running programs of a command transform: as many as there are threads that need one at once.
package final class ChildPool: Sendable {
  private struct State {
    var command: ChildProcess.Command
    var idle: [ChildProcess] = []
    var messages: [String] = []
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
  /// written.
  func start(environment: [String: String]) throws(BatchError) {
    // A program that ends while it is written to must not end this one.
    signal(SIGPIPE, SIG_IGN)
    let command = state.withLock { state in
      state.command.environment = environment
      return state.command
    }
    let child = try ChildProcess(command)
    state.withLock { $0.idle.append(child) }
  }

  /// Lends a program that nobody else uses; if `body` throws it is ended, and the next one is new.
  func withChild<Result>(
    _ body: (ChildProcess) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    let (idle, command) = state.withLock { ($0.idle.popLast(), $0.command) }
    let child = if let idle { idle } else { try ChildProcess(command) }
    do {
      let result = try body(child)
      // Once it is idle it is another thread's.
      keep(child.takeErrors(), of: child)
      state.withLock { $0.idle.append(child) }
      return result
    } catch {
      keep(child.takeErrors(), of: child)
      child.end()
      throw error
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
        try child.close()
      } catch {
        failure = error
      }
      keep(child.takeErrors(), of: child)
    }
    if let failure { throw failure }
  }
}
