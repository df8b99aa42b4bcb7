package import BatchRuns
package import BatchIdentifiers
import CSQLite

extension Ledger {
  static func createFailureTable(in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_failure (
        run TEXT NOT NULL, position INTEGER NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL,
        attempt INTEGER NOT NULL, failed_at TEXT NOT NULL, PRIMARY KEY (run, position)
      ) WITHOUT ROWID
      """
    )
  }

  /// Enters failed identifiers, inside their chunk's transaction.
  func enter(
    _ failures: [(number: Int, error: BatchError)],
    at positions: Range<Int>,
    in connection: Connection
  ) throws(BatchError) {
    guard !failures.isEmpty else { return }
    let failures = failures.map { (position: positions.lowerBound + $0.number, error: $0.error) }
    if let retried {
      for failure in failures { try enterAgain(failure, of: retried, in: connection) }
      return
    }
    for failure in failures {
      try connection.execute(
        """
        INSERT INTO _batch_failure (run, position, code, message, attempt, failed_at)
        VALUES (?, ?, ?, ?, 1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
        """,
        .text(run),
        .integer(Int64(failure.position)),
        .text(failure.error.code.rawValue),
        .text(FailedIdentifier.message(of: failure.error))
      )
    }
  }

  static func failed(
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) -> [FailedIdentifier] {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_failure'"
    guard try connection.value(table) != nil else { return [] }
    let rows = try connection.prepare(
      """
      SELECT position, code, message, attempt, failed_at FROM _batch_failure
      WHERE run = ? ORDER BY position
      """
    )
    try rows.bind(.text(run), at: 1)
    var failed: [FailedIdentifier] = []
    while try rows.step() {
      failed.append(
        FailedIdentifier(
          position: Int(rows.integer(at: 0)),
          code: rows.text(at: 1),
          message: rows.text(at: 2),
          attempt: Int(rows.integer(at: 3)),
          failedAt: rows.text(at: 4)
        )
      )
    }
    return failed
  }
}

extension Store {
  /// The failed identifiers of a run, ascending.
  package func failedIdentifiers(ofRun run: String) async throws(BatchError) -> [FailedIdentifier] {
    try await connection(label: "batch.failed").perform { connection throws(BatchError) in
      try Ledger.failed(ofRun: run, in: connection)
    }
  }
}
