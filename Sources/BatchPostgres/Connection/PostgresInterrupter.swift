#if PostgreSQL
import BatchIdentifiers
import CPostgres

/// Stops what a session does, from any thread.
package final class PostgresInterrupter: Sendable {
  @safe private struct State {
    var isInterrupted = false
    /// What the server is asked with; nil while there is no session.
    var request: OpaquePointer?
  }

  private let state = Lock(State())

  package init() {}

  deinit { detach() }

  /// Whether somebody has asked for the end.
  package var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

  /// Has the running statement and every later one fail with an error of code `interrupted`.
  package func interrupt() {
    state.withLock { state in
      state.isInterrupted = true
      unsafe Self.send(state.request)
    }
  }

  /// Has the server end the running statement, if there is one.
  func cancel() {
    state.withLock { unsafe Self.send($0.request) }
  }

  /// Speaks of a session from now on.
  func attach(_ session: OpaquePointer) {
    let request = unsafe PQgetCancel(session)
    state.withLock { state in
      unsafe PQfreeCancel(state.request)
      unsafe state.request = request
    }
  }

  /// Speaks of no session from now on.
  func detach() {
    state.withLock { state in
      unsafe PQfreeCancel(state.request)
      unsafe state.request = nil
    }
  }

  private static func send(_ request: OpaquePointer?) {
    guard let request = unsafe request else { return }
    // Whether the server has heard it shows in the statement's answer; whoever waits asks again.
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
      _ = unsafe PQcancel(request, message.baseAddress, 256)
    }
  }
}
#endif
