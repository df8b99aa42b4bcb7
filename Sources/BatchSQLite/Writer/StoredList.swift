import BatchRuns
package import BatchIdentifiers

/// The identifier list of a run, kept in the store in addition to the checkpoint: the bytes of the
/// original checkpoint, in pieces.
///
/// A lost checkpoint is restored from it. The ledger records what has been done.
enum StoredList {
  private static let pieceByteCount = 1 << 18

  static func createTable(in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_list (
        run TEXT NOT NULL, piece INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (run, piece)
      ) WITHOUT ROWID
      """
    )
  }

  static func enter(
    _ list: PackedIdentifiers,
    metadata: [UInt8],
    ofRun run: String,
    in connection: Connection
  ) throws(BatchError) {
    var piece: [UInt8] = []
    var number: Int64 = 0
    func flush() throws(BatchError) {
      try connection.execute(
        "INSERT INTO _batch_list (run, piece, bytes) VALUES (?, ?, ?)",
        .text(run),
        .integer(number),
        .blob(piece)
      )
      number += 1
      piece.removeAll(keepingCapacity: true)
    }
    try IdentifierFile.encode(list, metadata: metadata) { bytes throws(BatchError) in
      piece.append(copying: bytes)
      if piece.count >= pieceByteCount { try flush() }
    }
    if !piece.isEmpty { try flush() }
  }

  static func remove(ofRun run: String, in connection: Connection) throws(BatchError) {
    try connection.execute("DELETE FROM _batch_list WHERE run = ?", .text(run))
  }
}

extension Store {
  /// Reads a run's list from the store, piece by piece.
  ///
  /// - Returns: Whether the store has the list; if not, `body` is not called.
  package func readList(
    ofRun run: String,
    _ body: @Sendable (_ next: () throws(BatchError) -> [UInt8]?) throws(BatchError) -> Void
  ) async throws(BatchError) -> Bool {
    try await connection(label: "batch.list").perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        let count = try? connection.value(
          "SELECT count(*) FROM _batch_list WHERE run = ?",
          .text(run)
        )
        guard case .integer(let count) = count, count > 0 else { return false }
        let rows = try connection.prepare(
          "SELECT bytes FROM _batch_list WHERE run = ? ORDER BY piece"
        )
        try rows.bind(.text(run), at: 1)
        try body { () throws(BatchError) in
          guard try rows.step() else { return nil }
          guard case .blob(let bytes) = rows.value(at: 0) else { throw Ledger.damaged(run) }
          return bytes
        }
        return true
      }
    }
  }
}
