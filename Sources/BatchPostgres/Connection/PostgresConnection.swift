#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

/// A context on a thread of its own, with a session of its own, which is made when it is needed and made anew when it was
/// lost.
///
/// Identifiers and values cross into it and out of it; the session and everything read through it stay inside.
package actor PostgresConnection {
  private let executor: ThreadExecutor
  private let address: ServerAddress
  private let label: String
  private var session: PostgresSession?
  private let interrupter = PostgresInterrupter()

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Makes a context, which the server lists as an application under the name of `label`.
  package init(
    label: String,
    address: ServerAddress,
    priority: ThreadExecutor.Priority = .normal
  ) {
    executor = ThreadExecutor(label: label, priority: priority)
    self.label = label
    self.address = address
  }

  /// Runs `body` on the context's thread, with its session.
  ///
  /// A session that breaks is not made anew within a call: what was done of it only `body` knows.
  package func perform<Result: Sendable>(
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try body(connect())
  }

  /// Runs `body` on the context's thread.
  package func compute<Result: Sendable>(
    _ body: @Sendable () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try executor.requireThread()
    return try body()
  }

  /// Makes the running statement fail with `BatchError` of code `interrupted`, and every later one;
  /// from any thread.
  package nonisolated func interrupt() { interrupter.interrupt() }

  /// Ends the session, if there is one; the next call makes another.
  package func close() {
    session?.close()
    session = nil
  }

  private func connect() throws(BatchError) -> PostgresSession {
    try executor.requireThread()
    if interrupter.isInterrupted {
      throw BatchError(.interrupted, "interrupted", at: address.description)
    }
    if let session, !session.isLost { return session }
    close()
    let made = try PostgresSession(address, applicationName: label, interrupter: interrupter)
    session = made
    return made
  }
}
#endif
