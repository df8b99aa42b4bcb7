package import BatchRuns
package import BatchIdentifiers

extension Ledger {
  static func createPassedOverTable(in connection: Connection) throws(BatchError) {
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS _batch_passed_over (
        run TEXT NOT NULL, first INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (run, first)
      ) WITHOUT ROWID
      """
    )
  }

  /// Enters the passed-over identifiers of a chunk, by number in the chunk, inside its transaction.
  ///
  /// Most chunks have none and get no entry.
  func enter(
    _ passedOver: PassedOver,
    at positions: Range<Int>,
    in connection: Connection
  ) throws(BatchError) {
    if passedOver.isEmpty { return }
    guard let retried else {
      return try enter(passedOver.packed(from: 0), at: positions.lowerBound, in: connection)
    }
    // Retried identifiers are scattered, and each one may be the first of its original chunk.
    var again = PassedOver()
    again.formUnion(passedOver) { retried.positions[positions.lowerBound + $0] }
    guard let first = again.first else { return }
    let bytes = try connection.value(
      "SELECT bytes FROM _batch_passed_over WHERE run = ? AND first = ?",
      .text(run),
      .integer(Int64(first))
    )
    if case .blob(let bytes) = bytes { try again.add(bytes, from: first, ofRun: run) }
    try enter(again.packed(from: first), at: first, in: connection)
  }

  private func enter(
    _ bytes: [UInt8],
    at first: Int,
    in connection: Connection
  ) throws(BatchError) {
    try connection.execute(
      "INSERT OR REPLACE INTO _batch_passed_over (run, first, bytes) VALUES (?, ?, ?)",
      .text(run),
      .integer(Int64(first)),
      .blob(bytes)
    )
  }

  /// The entries of a run after a position, about as many as may be held at once; nil if none are
  /// left.
  static func passedOver(
    ofRun run: String,
    after last: Int?,
    in connection: Connection
  ) throws(BatchError) -> [PassedOverRecord.Piece]? {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_passed_over'"
    guard try connection.value(table) != nil else { return nil }
    let rows = try connection.prepare(
      "SELECT first, bytes FROM _batch_passed_over WHERE run = ? AND first > ? ORDER BY first"
    )
    try rows.bind(.text(run), at: 1)
    try rows.bind(Int64(last ?? -1), at: 2)
    defer { rows.reset() }
    var pieces: [PassedOverRecord.Piece] = []
    var byteCount = 0
    while byteCount < PassedOverRecord.byteLimit, try rows.step() {
      guard case .blob(let bytes) = rows.value(at: 1) else { throw damaged(run) }
      pieces.append(.init(first: Int(rows.integer(at: 0)), bytes: bytes))
      byteCount += bytes.count
    }
    return pieces.isEmpty ? nil : pieces
  }
}

extension PassedOver {
  fileprivate mutating func add(
    _ bytes: [UInt8],
    from first: Int,
    ofRun run: String
  ) throws(BatchError) {
    do throws(ByteReader.Damage) {
      try unpack(bytes.span, from: first)
    } catch {
      throw Ledger.damaged(run)
    }
  }
}

extension Store {
  /// The outcome of each identifier of a run, from a single snapshot; nil if the store does not
  /// know the run.
  package func rowOutcomes(ofRun run: String) async throws(BatchError) -> RowOutcomes? {
    try await connection(label: "batch.outcomes").perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        guard let ledger = try Ledger(of: run, in: connection) else { return nil }
        var passedOver = RowOutcomes.PassedOverPositions()
        var last: Int?
        while let pieces = try Ledger.passedOver(ofRun: run, after: last, in: connection) {
          for piece in pieces {
            var chunk = PassedOver()
            try chunk.add(piece.bytes, from: piece.first, ofRun: run)
            passedOver.formUnion(chunk)
          }
          last = pieces.last?.first
        }
        return RowOutcomes(
          done: ledger.done,
          passedOver: passedOver,
          failed: try Ledger.failed(ofRun: run, in: connection)
        )
      }
    }
  }
}
