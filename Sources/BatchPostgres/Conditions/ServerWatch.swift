#if PostgreSQL
package import BatchEngine
import BatchIdentifiers

/// Looks once in a while how a server fares, beside a run and on a connection of its own, and tells what it saw last.
package final class ServerWatch: Sendable {
  private let table: PostgresTable
  private let limits: ServerHealth.Limits
  private let connection: PostgresConnection
  private let interval: Duration
  private let seen = Lock<RunThrottle.StoreHold?>(nil)

  /// A watch over the server of a table, which has not looked yet.
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

  /// Why nothing may be done now, by the last look.
  package var hold: RunThrottle.StoreHold? { seen.withLock { $0 } }

  /// Looks until the task is cancelled, in which case the connection is closed.
  package func run() async {
    while !Task.isCancelled {
      await look()
      try? await Task.sleep(for: interval)
    }
    connection.interrupt()
    await connection.close()
  }

  /// Looks once.
  package func look() async {
    let (oid, limits) = (table.oid, limits)
    let hold = try? await connection.perform { session throws(BatchError) in
      try ServerHealth(of: oid, in: session).hold(limits)
    }
    // A server that cannot be asked does not hold the run: its chunks find out why.
    seen.withLock { $0 = hold ?? nil }
  }
}
#endif
