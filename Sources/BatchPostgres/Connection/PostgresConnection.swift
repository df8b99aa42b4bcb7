#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// Owns a thread and a session, which it opens when needed and reopens after a loss; the session
/// and everything read through it stay inside.
package actor PostgresConnection {
  package typealias Connecting = @Sendable (_ label: String) -> PostgresConnection

  private let executor: ThreadExecutor
  private let address: ServerAddress
  private let label: String
  private var session: PostgresSession?
  private let interrupter: PostgresInterrupter

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Creates a connection that `stop` also interrupts; `label` is its application name on the
  /// server.
  package init(
    label: String,
    address: ServerAddress,
    within stop: PostgresInterrupter? = nil,
    priority: ThreadExecutor.Priority = .normal
  ) {
    interrupter = PostgresInterrupter(within: stop)
    executor = ThreadExecutor(label: label, priority: priority)
    self.label = label
    self.address = address
  }

  /// Runs `body` on the connection's thread, with its session; a call does not reopen a broken
  /// session, since only `body` knows how much of its work is done.
  package func perform<Result: Sendable>(
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try body(connect())
  }

  package func compute<Result: Sendable>(
    _ body: @Sendable () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try executor.requireThread()
    return try body()
  }

  /// Makes the running statement and all later ones fail with `BatchError` of code `interrupted`;
  /// callable from any thread.
  package nonisolated func interrupt() { interrupter.interrupt() }

  /// Ends the session, if there is one; the next call opens another.
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
    let made = try PostgresSession(
      address,
      applicationName: label,
      interrupter: interrupter,
      waits: interrupter.waits
    )
    session = made
    return made
  }
}
#endif
