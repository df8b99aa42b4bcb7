package import BatchRuns
package import BatchIdentifiers

/// Owns a thread and a connection.
///
/// Identifiers and values enter and leave it; the connection and everything read through it stay
/// inside, as with Core Data's `performBackgroundTask`.
package actor StoreConnection {
  private let executor: ThreadExecutor
  private let path: String
  private let options: Connection.Options
  private var connection: Connection?
  private let interrupter = Lock<(isInterrupted: Bool, current: Interrupter?)>((false, nil))

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Opens its connection on first use.
  package init(
    label: String,
    path: String,
    options: Connection.Options,
    priority: ThreadExecutor.Priority = .normal
  ) {
    executor = ThreadExecutor(label: label, priority: priority)
    self.path = path
    self.options = options
  }

  package func perform<Result: Sendable>(
    _ body: @Sendable (Connection) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try body(connect())
  }

  package func compute<Result: Sendable>(
    _ body: @Sendable () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try executor.requireThread()
    return try body()
  }

  /// Makes the running statement and all later ones fail with `BatchError` of code `interrupted`,
  /// from any thread.
  package nonisolated func interrupt() {
    interrupter.withLock { interrupter in
      interrupter.isInterrupted = true
      interrupter.current?.interrupt()
    }
  }

  /// Closes the connection if it is open; the next call opens another.
  package func close() {
    interrupter.withLock { $0.current = nil }
    connection?.close()
    connection = nil
  }

  private func connect() throws(BatchError) -> Connection {
    try executor.requireThread()
    let opened =
      if let connection { connection } else { try Connection(path: path, options: options) }
    connection = opened
    let isInterrupted = interrupter.withLock { interrupter in
      interrupter.current = opened.interrupter
      return interrupter.isInterrupted
    }
    if isInterrupted { throw BatchError(.interrupted, "interrupted", at: path) }
    return opened
  }
}
