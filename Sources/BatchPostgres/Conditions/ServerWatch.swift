#if PostgreSQL
package import BatchEngine
import BatchIdentifiers

/// Checks the server's health at an interval during a run, on its own connection, and keeps the latest result.
package final class ServerWatch: Sendable {
  private let table: PostgresTable
  private let limits: ServerHealth.Limits
  private let connection: PostgresConnection
  private let interval: Duration
  private let seen = Lock<RunThrottle.StoreHold?>(nil)

  /// A watch over the server of a table, before the first check.
  package init(
    over table: PostgresTable,
    at address: ServerAddress,
    limits: ServerHealth.Limits,
    every interval: Duration = .seconds(1)
  ) {
    self.table = table
    self.limits = limits
    self.interval = interval
    connection = PostgresConnection(label: "batch.watch", address: address)
  }

  /// What holds the run, according to the latest check.
  package var hold: RunThrottle.StoreHold? { seen.withLock { $0 } }

  /// Checks until the task is cancelled; then closes the connection.
  package func run() async {
    while !Task.isCancelled {
      await look()
      try? await Task.sleep(for: interval)
    }
    connection.interrupt()
    await connection.close()
  }

  /// Checks once.
  package func look() async {
    let (oid, limits) = (table.oid, limits)
    let hold = try? await connection.perform { session throws(BatchError) in
      try ServerHealth(of: oid, in: session).hold(limits)
    }
    // A server that does not answer does not hold the run: its chunks find out why.
    seen.withLock { $0 = hold ?? nil }
  }
}
#endif
