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

/// The running programs of a command transform: as many as are needed at once, up to a limit.
package final class ChildPool: Sendable {
  private struct State {
    var command: ChildProcess.Command
    var idle: [ChildProcess] = []
    var messages: [String] = []
    /// How many more may be lent.
    var places: DispatchSemaphore?
  }

  /// The maximum number of pending lines from standard error.
  private static let messageLimit = 1000

  private let name: String
  private let state: Lock<State>

  /// Creates an empty pool.
  init(_ command: ChildProcess.Command) {
    name = command.executable.lastComponent?.string ?? "command"
    state = Lock(State(command: command))
  }

  /// Starts the first program, unless it would have nothing to do, so that a failure to start shows
  /// before anything is written.
  func start(
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

  /// Lends an idle program, as soon as there is one; if `body` throws, the program is ended, and
  /// the next one is new.
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
      // Once idle, it belongs to another thread.
      keep(child.takeErrors(), of: child)
      state.withLock { $0.idle.append(child) }
      return result
    } catch {
      child.end()
      keep(child.takeErrors(), of: child)
      throw error
    }
  }

  /// An idle program, or a new one.
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

  /// The programs' output to standard error since the last call, each line prefixed with the
  /// program and its process.
  func takeMessages() -> [String] {
    state.withLock { state in
      defer { state.messages.removeAll() }
      return state.messages
    }
  }

  /// Ends the programs, and kills those that do not end by themselves.
  ///
  /// - Throws: `BatchError` of code `commandUnreliable` if one has written unrequested answers.
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
