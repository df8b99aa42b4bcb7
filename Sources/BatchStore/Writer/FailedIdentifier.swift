package import BatchIdentifiers
import CSQLite

/// An identifier for which the action failed alone, and why.
package struct FailedIdentifier: Hashable, Sendable {
  /// Its position in the list.
  package let position: Int
  /// The name of the error's code.
  package let code: String
  /// What was wrong, at most ``maximumMessageByteCount`` bytes of it.
  package let message: String

  /// The most bytes of a message that are kept.
  static let maximumMessageByteCount = 1000

  init(position: Int, error: BatchError) {
    self.init(position: position, code: error.code.rawValue, message: error.message)
  }

  init(position: Int, code: String, message: String) {
    self.position = position
    self.code = code
    self.message = String(
      decoding: message.utf8.prefix(Self.maximumMessageByteCount),
      as: UTF8.self
    )
  }
}

extension BatchError {
  /// Whether the error is about the values of a row, so that the other rows of its chunk may fare
  /// better: a constraint, a trigger's `RAISE`, a type, an expression that fails for these values.
  ///
  /// All else is about the whole run: a lock, the disk, a damaged or read-only database, memory, an
  /// interrupt, a statement that does not compile.
  var isAboutRows: Bool {
    guard let sqlite else { return code == .constraint }
    switch sqlite.resultCode {
    case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_TOOBIG: return true
    case .SQLITE_ERROR: return sqlite.operation == "step"
    default: return false
    }
  }
}

extension Ledger {
  /// Makes the table of failed identifiers where it is missing.
  static func createFailureTable(in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_failure (
        run TEXT NOT NULL, position INTEGER NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL,
        failed_at TEXT NOT NULL, PRIMARY KEY (run, position)
      ) WITHOUT ROWID
      """
    )
  }

  /// Enters failed identifiers, inside the transaction of their chunk.
  func enter(_ failed: [FailedIdentifier], in connection: Connection) throws(BatchError) {
    guard !failed.isEmpty else { return }
    // A run that an earlier version began has no such table.
    try Self.createFailureTable(in: connection)
    for identifier in failed {
      try connection.execute(
        """
        INSERT INTO _batch_failure (run, position, code, message, failed_at)
        VALUES (?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
        """,
        .text(run),
        .integer(Int64(identifier.position)),
        .text(identifier.code),
        .text(identifier.message)
      )
    }
  }

  /// The failed identifiers of a run, ascending.
  static func failed(
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) -> [FailedIdentifier] {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_failure'"
    guard try connection.value(table) != nil else { return [] }
    let rows = try connection.prepare(
      "SELECT position, code, message FROM _batch_failure WHERE run = ? ORDER BY position"
    )
    try rows.bind(.text(run), at: 1)
    var failed: [FailedIdentifier] = []
    while try rows.step() {
      failed.append(
        FailedIdentifier(
          position: Int(rows.integer(at: 0)),
          code: rows.text(at: 1),
          message: rows.text(at: 2)
        )
      )
    }
    return failed
  }
}

extension Store {
  /// The identifiers of a run that failed, ascending.
  package func failedIdentifiers(ofRun run: String) async throws(BatchError) -> [FailedIdentifier] {
    try await makeContext(label: "batch.failed").perform { connection throws(BatchError) in
      try Ledger.failed(ofRun: run, in: connection)
    }
  }
}
