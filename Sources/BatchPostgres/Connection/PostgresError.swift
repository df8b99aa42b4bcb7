#if PostgreSQL
import BatchEngine
public import BatchIdentifiers

/// What the server or libpq said, kept as `BatchError.underlying` of the error that it led to.
///
/// | SQLSTATE | code | what a run does |
/// | --- | --- | --- |
/// | 40001, 40P01, 55P03, 53300 | `busy` | tries the chunk again after a rest |
/// | 08xxx, 57Pxx, 25P03 | `connectionLost` | the same, on a new connection |
/// | 57014 | `statementCancelled` | does the chunk in halves; `interrupted` where this process asked for it |
/// | 21xxx, 22xxx, 23xxx, 38xxx, 44xxx, 54000, P0xxx | `invalidValue`, `constraint` | looks for the row, which may be passed over |
/// | others | by what they are about | fails |
package struct PostgresError: DatabaseError, CustomStringConvertible {
  /// The kind of error; nil where libpq itself failed before it heard of the server.
  package var state: SQLState?
  /// The message, in the server's language.
  package var message: String
  /// More about it, which may hold values of the row.
  package var detail: String?
  /// What the server advises.
  package var hint: String?
  /// What the error is about, where the server says so.
  package var schema: String?
  package var table: String?
  package var column: String?
  package var constraint: String?
  /// Where in the statement it is, in characters from 1 on.
  package var position: Int?

  package init(_ message: String, state: SQLState? = nil) {
    self.message = message
    self.state = state
  }

  /// The server's message and code with what goes with it.
  package var description: String {
    let parts = [detail, hint].compactMap(\.self).map { "; \($0)" }.joined()
    return "\(message) (SQLSTATE \(state?.rawValue ?? "unknown"))\(parts)"
  }

  package var isAboutRows: Bool {
    switch state?.errorClass {
    // Too many rows of a subquery; values that cannot be; constraints, also those of views; what functions raise.
    case "21", "22", "23", "38", "44", "P0": true
    // A row that is too large for its page or an index.
    default: state == .programLimitExceeded
    }
  }

  /// Whether the connection is gone, or was never made.
  package var isConnectionLoss: Bool {
    guard let state else { return false }
    return state.errorClass == "08" || state.isShutdown || state == .idleInTransactionTimeout
  }
}

extension BatchError.Code {
  /// The server does not let the role in, or do this.
  public static let accessDenied = Self(rawValue: "accessDenied")
  /// A time limit of the server, or somebody there, has ended the statement.
  public static let statementCancelled = Self(rawValue: "statementCancelled")
  /// A value is none of its type, or an expression has no value for a row.
  public static let invalidValue = Self(rawValue: "invalidValue")
}

extension BatchError {
  /// Whether less at once may succeed: a time limit of the server has ended the statement.
  package var isAboutAmount: Bool { code == .statementCancelled }

  /// The server's error behind this one, if there is one.
  package var postgres: PostgresError? { underlying as? PostgresError }

  /// The error about what a server has said.
  ///
  /// - Parameters:
  ///   - error: What it has said.
  ///   - server: Where it is.
  ///   - isInterrupted: Whether it was this process that asked for the statement's end.
  package init(_ error: PostgresError, server: String, isInterrupted: Bool = false) {
    let (code, advice) = Self.meaning(of: error, isInterrupted)
    var message = error.message
    if code == .interrupted { message = "interrupted" }
    // What failed stands in the list of failed identifiers by its message alone.
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
    case .queryCanceled where isInterrupted: return (.interrupted, nil)
    case .queryCanceled:
      return (.statementCancelled, "raise its time limit, or see who has cancelled it")
    case .serializationFailure, .deadlockDetected: return (.busy, "\(.repetition)")
    case .lockNotAvailable:
      return (.busy, "see in pg_locks who has the lock, or raise \(.busyTimeout)")
    case .tooManyConnections:
      return (.busy, "wait for others to disconnect, or raise max_connections")
    case .diskFull: return (.diskFull, "make room on the server, then \(.repetition): it resumes")
    case .readOnlyTransaction:
      return (.readOnly, "name the primary server, and see default_transaction_read_only")
    case .insufficientPrivilege: return (.accessDenied, "have the role granted what it lacks")
    case .programLimitExceeded: return (.invalidValue, nil)
    case .undefinedTable: return (.unknownEntity, nil)
    case .undefinedColumn: return (.unknownAttribute, nil)
    case _ where error.isConnectionLoss: return (.connectionLost, "see that the server runs")
    default: break
    }
    switch state.errorClass {
    case "21", "22": return (.invalidValue, nil)
    case "23", "38", "44", "P0": return (.constraint, nil)
    case "28": return (.accessDenied, nil)
    // Of a database: invalid_catalog_name.
    case "3D": return (.accessDenied, "see with psql -l which databases there are")
    case "0A", "42": return (.invalidSQL, nil)
    default: return (.databaseAccess, nil)
    }
  }
}
#endif
