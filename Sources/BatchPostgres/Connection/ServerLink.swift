#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchPlatform
import CPostgres
import Dispatch

/// Lets other threads end what a session waits for.
@safe
final class ServerLink: Sendable {
  /// How long the server may take to end a statement before the connection is given up.
  private static let pollInterval = Duration.milliseconds(500)

  private struct State {
    /// Nil after the end of the session, since the number may then belong to another file.
    var socket: Int32?
    var isSevered = false
  }

  // Never written, and libpq allows sending it from any thread.
  private nonisolated(unsafe) let request: OpaquePointer?
  private let state: Lock<State>
  private let requests = DispatchGroup()

  init(_ session: OpaquePointer) {
    unsafe request = PQgetCancel(session)
    state = Lock(State(socket: unsafe PQsocket(session)))
  }

  deinit { unsafe PQfreeCancel(request) }

  /// Asks the server to end the running statement, if there is one.
  ///
  /// Does not wait, since a server that hangs does not answer this either. A request that arrives
  /// before the statement has no effect, so the thread that waits for the statement asks again.
  func cancel() {
    requests.enter()
    do {
      try DetachedThread.start { [self] in
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
          _ = unsafe PQcancel(request, message.baseAddress, 256)
        }
        requests.leave()
      }
    } catch {
      requests.leave()
    }
  }

  /// Waits until no request is in progress that could end a later statement, or the connection is
  /// given up.
  func settle() {
    while requests.wait(timeout: .now() + .milliseconds(50)) == .timedOut {
      if state.withLock({ $0.isSevered || $0.socket == nil }) { return }
    }
  }

  /// Soon ends whatever the session waits for: through the server if it answers, otherwise by
  /// giving up the connection.
  func end() {
    cancel()
    Task {
      try? await Task.sleep(for: Self.pollInterval)
      sever()
    }
  }

  /// Makes libpq find the connection lost, wherever it waits.
  private func sever() {
    state.withLock { state in
      state.isSevered = true
      if let socket = state.socket { shutdown(socket, Int32(SHUT_RDWR)) }
    }
  }

  /// Must be called before the session closes its socket.
  func detach() { state.withLock { $0.socket = nil } }
}
#endif
