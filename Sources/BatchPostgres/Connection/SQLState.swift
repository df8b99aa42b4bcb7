#if PostgreSQL
/// A SQLSTATE: what kind of error the server has, in five characters that no language changes.
///
/// The first two are the class. See <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
package struct SQLState: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package let rawValue: String

  package init(rawValue: String) {
    self.rawValue = rawValue
  }

  package var description: String { rawValue }

  /// The first two characters.
  package var errorClass: String { String(rawValue.prefix(2)) }

  /// Whether the server, the database or the session was shut down, or the server is not up yet: 57P01 to 57P05.
  package var isShutdown: Bool { rawValue.hasPrefix("57P") }

  /// The server cannot do what was asked.
  package static let featureNotSupported = Self(rawValue: "0A000")
  /// The connection broke.
  package static let connectionFailure = Self(rawValue: "08006")
  /// The connection broke at COMMIT: whether the transaction is done only the database knows.
  package static let transactionResolutionUnknown = Self(rawValue: "08007")
  /// A transaction that is for reading only was to write.
  package static let readOnlyTransaction = Self(rawValue: "25006")
  /// The server ended a connection that was idle inside a transaction for too long.
  package static let idleInTransactionTimeout = Self(rawValue: "25P03")
  /// No transaction at this isolation level could have had this result.
  package static let serializationFailure = Self(rawValue: "40001")
  /// Two transactions waited for each other.
  package static let deadlockDetected = Self(rawValue: "40P01")
  /// The role may not do this.
  package static let insufficientPrivilege = Self(rawValue: "42501")
  /// The statement is not SQL.
  package static let syntaxError = Self(rawValue: "42601")
  /// There is no such column.
  package static let undefinedColumn = Self(rawValue: "42703")
  /// There is no such function.
  package static let undefinedFunction = Self(rawValue: "42883")
  /// There is no such table.
  package static let undefinedTable = Self(rawValue: "42P01")
  /// The disk of the server is full.
  package static let diskFull = Self(rawValue: "53100")
  /// The server has as many connections as it may have.
  package static let tooManyConnections = Self(rawValue: "53300")
  /// A value is larger than the server can keep where it belongs.
  package static let programLimitExceeded = Self(rawValue: "54000")
  /// A lock was not to be had, or not in time.
  package static let lockNotAvailable = Self(rawValue: "55P03")
  /// Somebody, or a time limit, has cancelled the statement.
  package static let queryCanceled = Self(rawValue: "57014")
}
#endif
