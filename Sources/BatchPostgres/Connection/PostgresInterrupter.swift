#if PostgreSQL
import BatchIdentifiers
import CPostgres

/// Stops a session's work from any thread.
package final class PostgresInterrupter: Sendable {
  @safe private struct State {
    var isInterrupted = false
    /// The request that cancels a statement; nil without a session.
    var request: OpaquePointer?
  }

  private let state = Lock(State())

  package init() {}

  deinit { detach() }

  /// Whether an interrupt was requested.
  package var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

  /// Makes the running statement and all later ones fail with an error of code `interrupted`.
  package func interrupt() {
    state.withLock { state in
      state.isInterrupted = true
      unsafe Self.send(state.request)
    }
  }

  /// Makes the server end the running statement, if there is one.
  func cancel() {
    state.withLock { unsafe Self.send($0.request) }
  }

  /// Attaches a session.
  func attach(_ session: OpaquePointer) {
    let request = unsafe PQgetCancel(session)
    state.withLock { state in
      unsafe PQfreeCancel(state.request)
      unsafe state.request = request
    }
  }

  /// Detaches the session.
  func detach() {
    state.withLock { state in
      unsafe PQfreeCancel(state.request)
      unsafe state.request = nil
    }
  }

  private static func send(_ request: OpaquePointer?) {
    guard let request = unsafe request else { return }
    // The statement's answer shows whether the server got the request; whoever waits for it asks again.
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
      _ = unsafe PQcancel(request, message.baseAddress, 256)
    }
  }
}
#endif
