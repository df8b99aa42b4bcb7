#if PostgreSQL
package import BatchEngine

/// How a server fares on which a run writes to a table, as far as it lets the role see.
package struct ServerHealth: Sendable, Hashable {
  /// A standby, and how far it is behind.
  package struct Standby: Sendable, Hashable {
    package var name: String
    package var lag: Duration
    package var bytes: Int64
  }

  /// A lock on the table that no writer gets past.
  package struct Lock: Sendable, Hashable {
    /// `AccessExclusiveLock` and the like.
    package var mode: String
    package var process: Int
    /// Whether somebody waits for it, behind whom all others wait then.
    package var isAwaited: Bool
  }

  /// The standby that is the furthest behind.
  package var standby: Standby?
  /// How many files of the write-ahead log wait to be archived.
  package var unarchived: Int?
  /// The process that vacuums the table, other than to prevent wraparound, which must not wait.
  package var vacuum: Int?
  package var lock: Lock?
  /// How many connections are left for roles like this one.
  package var spareConnections: Int?

  package init() {}
}

extension ServerHealth {
  /// What a run puts up with; nil for anything.
  package struct Limits: Sendable, Hashable {
    package var lag: Duration?
    package var lagBytes: Int64?
    package var unarchived: Int?
    package var spareConnections: Int?
    package var yieldsToVacuum: Bool

    package init(
      lag: Duration? = .seconds(10),
      lagBytes: Int64? = 1 << 30,
      unarchived: Int? = 64,
      spareConnections: Int? = 3,
      yieldsToVacuum: Bool = true
    ) {
      self.lag = lag
      self.lagBytes = lagBytes
      self.unarchived = unarchived
      self.spareConnections = spareConnections
      self.yieldsToVacuum = yieldsToVacuum
    }
  }

  /// Why nothing may be done now; nil if it may.
  ///
  /// The first reason counts, those of others before those of the server.
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
      return .init("replicationLag", "standby \(standby.name) is \(standby.bytes >> 20) MB behind")
    }
    if let unarchived, let limit = limits.unarchived, unarchived > limit {
      return .init(
        "archiveBacklog",
        "\(unarchived) files of the write-ahead log wait to be archived"
      )
    }
    if let spareConnections, let limit = limits.spareConnections, spareConnections < limit {
      return .init("connections", "\(max(0, spareConnections)) connections are left")
    }
    return nil
  }
}
#endif
