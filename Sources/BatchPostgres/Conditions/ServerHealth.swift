#if PostgreSQL
package import BatchRuns
import BatchIdentifiers

/// The health of the server on which a run writes to a table, limited to what the role may see.
package struct ServerHealth: Sendable, Hashable {
  package struct Standby: Sendable, Hashable {
    package var name: String
    package var lag: Duration
    package var bytes: Int64
  }

  package struct Lock: Sendable, Hashable {
    /// For example `AccessExclusiveLock`.
    package var mode: String
    package var process: Int
    /// Whether a process still waits for it; everyone else then waits behind that process.
    package var isAwaited: Bool
  }

  package var standby: Standby?
  /// How many files of the write-ahead log wait to be archived.
  package var unarchived: Int?
  /// The process that vacuums the table, unless the vacuum prevents wraparound and so must not
  /// wait.
  package var vacuum: Int?
  package var lock: Lock?
  /// How many more connections the role may open to the database.
  package var spareConnections: Int?

  package init() {}
}

extension ServerHealth {
  /// The limits beyond which the server holds a run; nil for no limit.
  package struct Limits: Sendable, Hashable {
    package var lag: Duration?
    package var lagBytes: Int64?
    package var unarchived: Int?
    package var spareConnections: Int
    package var yieldsToVacuum: Bool

    package init(
      lag: Duration? = .seconds(10),
      lagBytes: Int64? = 1 << 30,
      unarchived: Int? = 64,
      spareConnections: Int = 3,
      yieldsToVacuum: Bool = false
    ) {
      self.lag = lag
      self.lagBytes = lagBytes
      self.unarchived = unarchived
      self.spareConnections = spareConnections
      self.yieldsToVacuum = yieldsToVacuum
    }
  }

  /// How many connections a process may open and leave some to others, at least one; nil if
  /// unknown.
  package func room(_ limits: Limits = .init()) -> Int? {
    spareConnections.map { max(1, $0 - limits.spareConnections) }
  }

  /// The reason why the run must be held; nil for none.
  ///
  /// Reports only the first reason, with other processes before the server's state.
  package func hold(_ limits: Limits) -> RunThrottle.StoreHold? {
    if let lock {
      let what = lock.isAwaited ? "waits for" : "has"
      return .init("tableLock", "process \(lock.process) \(what) \(lock.mode) on the table")
    }
    if limits.yieldsToVacuum, let vacuum {
      return .init("vacuum", "process \(vacuum) vacuums the table")
    }
    if let standby, let limit = limits.lag, standby.lag > limit {
      let lag = Int(standby.lag / .seconds(1))
      return .init("replicationLag", "standby \(standby.name) is \(lag) s behind")
    }
    if let standby, let limit = limits.lagBytes, standby.bytes > limit {
      return .init(
        "replicationLag",
        "standby \(standby.name) is \(ByteSize(bytes: standby.bytes)) behind"
      )
    }
    if let unarchived, let limit = limits.unarchived, unarchived > limit {
      return .init(
        "archiveBacklog",
        "\(unarchived.grouped) files of the write-ahead log wait to be archived"
      )
    }
    return nil
  }
}
#endif
