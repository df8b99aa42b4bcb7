#if PostgreSQL
/// A SQLSTATE: the server's error code, five characters that are the same in every language.
///
/// The first two are the class. See
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
package struct SQLState: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package let rawValue: String

  package init(rawValue: String) {
    self.rawValue = rawValue
  }

  package var description: String { rawValue }

  package var errorClass: String { String(rawValue.prefix(2)) }

  /// Whether the server, the database or the session was shut down, or the server is still
  /// starting: 57P01 to 57P05.
  package var isShutdown: Bool { rawValue.hasPrefix("57P") }
  /// Whether the server exists and may admit a session later, because it is starting or has no
  /// connection left.
  package var isTemporaryRefusal: Bool { isShutdown || self == .tooManyConnections }

  package static let featureNotSupported = Self(rawValue: "0A000")
  /// A message does not follow the protocol, or a pooler refuses it.
  package static let protocolViolation = Self(rawValue: "08P01")
  package static let connectionFailure = Self(rawValue: "08006")
  /// The connection broke at COMMIT, so only the database knows whether the transaction was
  /// committed.
  package static let transactionResolutionUnknown = Self(rawValue: "08007")
  /// More rows than one, also two rows with one key in an INSERT with ON CONFLICT DO UPDATE.
  package static let cardinalityViolation = Self(rawValue: "21000")
  package static let readOnlyTransaction = Self(rawValue: "25006")
  /// The server ended a session that was idle in a transaction for too long.
  package static let idleInTransactionTimeout = Self(rawValue: "25P03")
  /// Concurrent transactions conflict at this isolation level.
  package static let serializationFailure = Self(rawValue: "40001")
  package static let deadlockDetected = Self(rawValue: "40P01")
  package static let insufficientPrivilege = Self(rawValue: "42501")
  package static let syntaxError = Self(rawValue: "42601")
  package static let undefinedColumn = Self(rawValue: "42703")
  package static let groupingError = Self(rawValue: "42803")
  package static let windowingError = Self(rawValue: "42P20")
  /// For example, columns in ON CONFLICT that no index keeps unique.
  package static let invalidColumnReference = Self(rawValue: "42P10")
  package static let undefinedFunction = Self(rawValue: "42883")
  package static let undefinedTable = Self(rawValue: "42P01")
  package static let diskFull = Self(rawValue: "53100")
  package static let tooManyConnections = Self(rawValue: "53300")
  /// A value is larger than the server can store there.
  package static let programLimitExceeded = Self(rawValue: "54000")
  /// The object is not in the required state, for example a view that cannot be updated.
  package static let objectNotInPrerequisiteState = Self(rawValue: "55000")
  package static let lockNotAvailable = Self(rawValue: "55P03")
  /// A user or a time limit cancelled the statement.
  package static let queryCanceled = Self(rawValue: "57014")
}
#endif
