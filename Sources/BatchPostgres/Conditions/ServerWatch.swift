#if PostgreSQL
package import BatchRuns
import BatchIdentifiers

/// Checks the server's health at an interval during a run, on its own connection, and keeps the
/// latest result; if too few connections are left, workers close theirs.
package final class ServerWatch: Sendable {
  private let table: PostgresTable
  private let limits: ServerHealth.Limits
  private let connection: PostgresConnection
  private let interval: Duration
  private let workers: [PostgresConnection]
  private let state: Lock<State>

  private struct State {
    var hold: RunThrottle.StoreHold?
    var share: ConnectionShare
    /// The workers that close their connections when they have finished their chunks.
    var closing: Set<Int> = []
  }

  package init(
    over table: PostgresTable,
    at address: ServerAddress,
    limits: ServerHealth.Limits,
    workers: [PostgresConnection] = [],
    within stop: PostgresInterrupter? = nil,
    every interval: Duration = .seconds(1)
  ) {
    self.table = table
    self.limits = limits
    self.interval = interval
    self.workers = workers
    state = Lock(
      State(share: ConnectionShare(workers: workers.count, reserve: limits.spareConnections))
    )
    connection = PostgresConnection(label: "batch.watch", address: address, within: stop)
  }

  package var hold: RunThrottle.StoreHold? { state.withLock { $0.hold } }

  package func add(to conditions: inout RunThrottle.Conditions) {
    (conditions.storeHold, conditions.workers) = state.withLock {
      ($0.hold, $0.share.count)
    }
  }

  /// Checks until the task is cancelled; then closes the connection.
  package func run() async {
    await withTaskCancellationHandler {
      while !Task.isCancelled {
        await look()
        try? await Task.sleep(for: interval)
      }
    } onCancel: {
      connection.interrupt()
    }
    await connection.close()
  }

  package func look() async {
    let oid = table.oid
    let health = try? await connection.perform { session throws(BatchError) in
      try ServerHealth(of: oid, in: session)
    }
    let superfluous = state.withLock { state in
      // A server that does not answer does not hold the run, because its chunks find out why.
      state.hold = health?.hold(limits)
      if let spare = health?.spareConnections { state.share.observe(spare: spare) }
      // In a shortage, the worker that continues closes its connection as well, until its next
      // chunk. Another process may need it for the chunks that this one waits for.
      let isShort = (health?.spareConnections ?? .max) < limits.spareConnections
      let kept = isShort ? 0 : state.share.count
      let new = Set(workers.indices.dropFirst(kept)).subtracting(state.closing)
      state.closing.formUnion(new)
      return new
    }
    for worker in superfluous {
      // Its chunk may take long.
      Task {
        await workers[worker].close()
        _ = state.withLock { $0.closing.remove(worker) }
      }
    }
  }
}
#endif
