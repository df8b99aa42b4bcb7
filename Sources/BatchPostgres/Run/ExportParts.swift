#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// The parts of an export: its rows of `_batch_part`.
///
/// Each chunk of such a run has its own files. If a host takes over a span from a dead host, it
/// writes new files under other names. A file belongs to the export only if it is recorded here, in
/// the transaction that enters its chunk in the ledger; a host that has lost its span cannot record
/// its files.
package struct ExportParts: Sendable {
  package let fence: SpanFence

  package init(_ fence: SpanFence) {
    self.fence = fence
  }

  private var table: String { fence.tables.part }

  /// The owner of files whose names no other attempt has; after a failover that lost recent commits,
  /// the server grants spans with the same tokens as before.
  func owner(on host: String) -> ExportFiles.Owner {
    let attempt = String(UInt64.random(in: 0 ... .max), radix: 36)
    return ExportFiles.Owner(fence.run, host: host, attempt: "-\(attempt)")
  }

  /// Records the parts of some positions, whose files are complete and on disk, and the outcomes of
  /// their identifiers.
  ///
  /// After an error of code `connectionLost`, the parts may or may not be recorded; a retry finds
  /// out.
  ///
  /// - Throws: `BatchError` of code `leaseLost` if another process has taken over the span, so the
  ///   file does not belong to the export; the error of the identifier that exceeds the allowed
  ///   failures of the whole run.
  package func record(
    _ parts: [ExportPart],
    of positions: Range<Int>,
    _ written: ChunkResult,
    under lease: SpanLease,
    onFailure policy: FailurePolicy = .failChunk,
    in session: PostgresSession
  ) throws(BatchError) {
    try session.transaction(.bookkeeping) { () throws(BatchError) in
      guard try fence.enter(positions, under: lease, in: session) == .entered else { return }
      if policy != .failChunk {
        let policy = policy.after(try fence.tables.failureCount(ofRun: fence.run, in: session))
        if let failure = written.failures.dropFirst(policy.limit).first {
          throw policy.refusal(failure.error)
        }
      }
      try fence.complete(positions, written, in: session)
      for part in parts {
        try session.execute(
          """
          INSERT INTO \(table) (run, first, next, host, file, rows, bytes, sha256, first_key, last_key)
          VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9, $10)
          """,
          .text(fence.run),
          .integer(Int64(part.first)),
          .integer(Int64(part.next)),
          .text(part.host ?? ""),
          .text(part.file),
          .integer(Int64(part.rows)),
          .integer(Int64(part.bytes)),
          part.sha256.map { .text($0) } ?? .null,
          part.firstKey.map { .text($0) } ?? .null,
          part.lastKey.map { .text($0) } ?? .null
        )
      }
    }
  }

  /// The parts of all positions, in order; throws if positions are missing.
  package func recorded(
    ofPositions count: Int,
    in session: PostgresSession
  ) throws(BatchError) -> [ExportPart] {
    let rows = try session.execute(
      """
      SELECT first, next, host, file, rows, bytes, sha256, first_key, last_key FROM \(table)
      WHERE run = $1::uuid ORDER BY first
      """,
      .text(fence.run)
    )
    var parts: [ExportPart] = []
    var end = 0
    for row in 0..<rows.count {
      func number(_ column: Int) -> Int { Int(rows.integer(row, column) ?? 0) }
      guard number(0) == end, number(1) > end else { break }
      parts.append(
        ExportPart(
          number(0)..<number(1),
          host: rows.text(row, 2) ?? "",
          file: rows.text(row, 3) ?? "",
          rows: number(4),
          bytes: number(5),
          sha256: rows.text(row, 6),
          keys: (rows.text(row, 7), rows.text(row, 8))
        )
      )
      end = number(1)
    }
    guard end == count, parts.count == rows.count else {
      throw RunTables.damaged("parts of run \(fence.run) are missing in _batch_part")
    }
    return parts.filter { !$0.file.isEmpty }
  }
}
#endif
