#if PostgreSQL
import BatchRuns
public import BatchIdentifiers

/// An error of the server or libpq, kept as the `underlying` error of the `BatchError` that it
/// causes.
///
/// | SQLSTATE | code | what a run does |
/// | --- | --- | --- |
/// | 40001, 40P01, 55P03 | `busy` | retries the chunk after a pause |
/// | 08xxx, 57Pxx, 25P03, 53300 | `connectionLost` | the same, on a new connection |
/// | 57014 | `statementCancelled` | splits the chunk in two; `interrupted` if this process cancelled the statement |
/// | 21xxx, 22xxx, 23xxx, 38xxx, 44xxx, 54000, P0xxx | `invalidValue`, `constraint` | finds the row, which may be skipped |
/// | others | depends on the subject | fails |
package struct PostgresError: DatabaseError, CustomStringConvertible {
  /// The kind of error; nil if libpq failed before the server answered.
  package var state: SQLState?
  /// The message, in the server's language.
  package var message: String
  /// Details, which may contain values of the row.
  package var detail: String?
  package var hint: String?
  /// The object that the error is about, if the server names it.
  package var schema: String?
  package var table: String?
  package var column: String?
  package var constraint: String?
  /// The position in the statement, in characters from 1.
  package var position: Int?

  package init(_ message: String, state: SQLState? = nil) {
    self.message = message
    self.state = state
  }

  package var description: String {
    let parts = [detail, hint].compactMap(\.self).map { "; \($0)" }.joined()
    return "\(message) (SQLSTATE \(state?.rawValue ?? "unknown"))\(parts)"
  }

  package var isAboutRows: Bool {
    switch state?.errorClass {
    // Too many rows of a subquery; invalid values; constraints, including those of views; errors
    // raised by functions.
    case "21", "22", "23", "38", "44", "P0": true
    // A row that is too large for its page or an index.
    default: state == .programLimitExceeded
    }
  }

  package var isConnectionLoss: Bool {
    guard let state else { return false }
    return state.errorClass == "08" || state.isShutdown
      || [.idleInTransactionTimeout, .tooManyConnections].contains(state)
  }
}

extension BatchError {
  /// The error for a schema that a session has not verified.
  static func otherSchema(at address: ServerAddress) -> BatchError {
    BatchError(.otherRun, "the schema has changed", at: address.description)
  }

  /// Whether a change of the schema can be the cause.
  var canComeOfSchema: Bool {
    [.otherRun, .unstableKey].contains(code) || postgres != nil && code != .busy
  }

  /// Whether fewer rows may succeed, because a time limit ended the statement.
  package var isAboutAmount: Bool { code == .statementCancelled }

  package var postgres: PostgresError? { underlying as? PostgresError }

  /// Converts an error of the server; `isInterrupted` is whether this process cancelled the
  /// statement.
  package init(_ error: PostgresError, server: String, isInterrupted: Bool = false) {
    let (code, advice) = Self.meaning(of: error, isInterrupted)
    var message = error.message
    if code == .interrupted { message = "interrupted" }
    // The list of failed identifiers shows only the message.
    let names = [("column", error.column), ("constraint", error.constraint)].compactMap {
      noun,
      name in
      name.flatMap { message.contains($0) ? nil : "\(noun) \($0.quotedForMessage)" }
    }
    if !names.isEmpty { message += " (\(names.joined(separator: ", ")))" }
    if error.isAboutRows, let detail = error.detail { message += ": \(detail)" }
    let hint = error.hint.map { Remedy(stringLiteral: $0.onOneLine) }
    self.init(
      code,
      message.onOneLine,
      at: server,
      advice: advice ?? hint,
      underlying: error
    )
  }

  private static func meaning(
    of error: PostgresError,
    _ isInterrupted: Bool
  ) -> (Code, Remedy?) {
    guard let state = error.state else { return (.databaseAccess, nil) }
    switch state {
    case _ where isInterrupted && (state == .queryCanceled || error.isConnectionLoss):
      return (.interrupted, nil)
    case .queryCanceled:
      return (.statementCancelled, "raise its time limit, or find out who cancelled it")
    case .serializationFailure, .deadlockDetected: return (.busy, "\(.repetition)")
    case .lockNotAvailable:
      return (
        .busy,
        "wait for the holder of the lock, which pg_blocking_pids() finds, or raise \(.busyTimeout)"
      )
    case .tooManyConnections:
      return (
        .connectionLost,
        "use fewer workers or processes, wait for others to disconnect, or raise the limit"
      )
    case .diskFull: return (.diskFull, "make room on the server, then \(.repetition): it resumes")
    case .readOnlyTransaction:
      return (.readOnly, "connect to the primary server, and check default_transaction_read_only")
    case .insufficientPrivilege:
      return (.accessDenied, "have the role granted the missing privilege")
    case .programLimitExceeded: return (.invalidValue, nil)
    case .undefinedTable: return (.unknownEntity, nil)
    case .undefinedColumn: return (.unknownAttribute, nil)
    case .objectNotInPrerequisiteState: return (.invalidSQL, nil)
    case .protocolViolation:
      return (
        .connectionLost, "if this is a pooler, let it lend connections for whole transactions"
      )
    case _ where error.isConnectionLoss:
      return (.connectionLost, "check that the server is running")
    default: break
    }
    switch state.errorClass {
    case "21", "22": return (.invalidValue, nil)
    case "23", "38", "44", "P0": return (.constraint, nil)
    case "28": return (.accessDenied, nil)
    // A database that does not exist: invalid_catalog_name.
    case "3D": return (.accessDenied, "list the databases with psql -l")
    case "0A", "42": return (.invalidSQL, nil)
    default: return (.databaseAccess, nil)
    }
  }
}
#endif
