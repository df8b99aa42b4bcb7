#if PostgreSQL
import BatchRuns
import BatchIdentifiers

/// Reports what the sessions of a process wait for in the server, after two seconds; while a
/// session waits, another session asks what for.
package final class ServerWaits: Sendable {
  private struct State {
    var waits: [ObjectIdentifier: ServerWait] = [:]
    /// The waits reported since a session began to wait.
    var told: Set<String> = []
    var isAsking = false
  }

  static let interval = Duration.seconds(1)
  /// How long the server may take to answer that.
  private static let pollInterval = Duration.seconds(1)

  private let address: ServerAddress
  let lockLimit: Duration
  private let tell: @Sendable (_ words: String) -> Void
  private let state = Lock(State())

  /// Calls `tell` with each new wait, in words; after `lockLimit`, a statement that waits for a
  /// lock fails with code `busy`.
  package init(
    at address: ServerAddress,
    lockLimit: Duration,
    tell: @escaping @Sendable (_ words: String) -> Void = { _ in }
  ) {
    self.address = address
    self.lockLimit = lockLimit
    self.tell = tell
  }

  package var words: String? { state.withLock { $0.waits.values.map(\.words).min() } }

  /// How long a session waits before it asks what for, which is less than it may wait for a lock.
  var delay: Duration { min(.seconds(2), lockLimit / 2) }

  /// Asks what a session waits for, and reports it if it is new; one session asks at a time.
  func look(
    at process: Int32,
    of link: ServerLink,
    within interrupter: PostgresInterrupter
  ) -> ServerWait? {
    let place = ObjectIdentifier(link)
    let (isFree, known) = state.withLock { state in
      defer { state.isAsking = true }
      return (!state.isAsking, state.waits[place])
    }
    guard isFree else { return known }
    let wait = ask(about: process, within: interrupter)
    let isNew = state.withLock { state in
      state.isAsking = false
      state.waits[place] = wait
      return wait.map { state.told.insert($0.words).inserted } ?? false
    }
    if isNew, let wait { tell("waiting for \(wait.words)") }
    return wait
  }

  func end(_ link: ServerLink) {
    state.withLock { state in
      state.waits[ObjectIdentifier(link)] = nil
      if state.waits.isEmpty { state.told = [] }
    }
  }

  private func ask(about process: Int32, within interrupter: PostgresInterrupter) -> ServerWait? {
    let own = PostgresInterrupter(within: interrupter)
    let limit = Task {
      try? await Task.sleep(for: Self.pollInterval)
      if !Task.isCancelled { own.interrupt() }
    }
    defer { limit.cancel() }
    do {
      let session = try PostgresSession(address, applicationName: "batch.look", interrupter: own)
      defer { session.close() }
      return try ServerWait(of: process, in: session)
    } catch {
      // If the role may not see who holds a lock, the session keeps waiting.
      return error.code == .interrupted && !interrupter.isInterrupted ? .silence : nil
    }
  }
}
#endif
