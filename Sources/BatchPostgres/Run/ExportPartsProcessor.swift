#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers

/// Exports to parts: each worker reads the rows of a chunk piece by piece into files of its own, and
/// records them once they are on disk.
///
/// Chunks are as large as spans, so there are few files, but only a small piece is in memory at a
/// time.
struct ExportPartsProcessor: ChunkProcessor {
  struct Prepared: Sendable {
    let parts: [ExportPart]
    let written: ChunkResult
    let worker: PostgresConnection
    let duration: Duration
  }

  let export: PostgresExport
  let folder: ExportFolder
  let settings: ExportFiles.Settings
  let parts: ExportParts
  /// Receives each part that is recorded.
  let recorded: Lock<[ExportPart]>
  let spans: LeasedSpans
  let key: PostgresKey
  let host: String
  /// The number of identifiers to read at once.
  let size: Int
  let onFailure: FailurePolicy
  let statementLimit: Duration
  let reconnection: Duration
  let connect: PostgresConnection.Connecting

  var inOrder: Bool { false }
  var handlerTimeLimit: Duration? { nil }
  /// One file for each span, or more.
  var chunkSize: Int? { RunPolicy.chunkSizeLimit }

  func makeWorker(_ label: String) -> PostgresConnection { connect(label) }

  func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in worker: PostgresConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let start = ContinuousClock.now
    let span = try spans.span(of: positions)
    let all = try span.keys(positions, key: key)
    let writer = ExportWriter(
      try ExportFiles.begin(
        in: folder,
        of: parts.owner(on: host),
        settings,
        from: positions.lowerBound
      ) { all.key(at: $0 - positions.lowerBound) },
      export.groups,
      done: DoneRanges(),
      failed: [],
      invalidTexts: 0,
      overwrites: true
    )
    var written = ChunkResult()
    var files: [ExportPart]
    do throws(BatchError) {
      var next = positions.lowerBound
      while next < positions.upperBound {
        let end = min(next + size, positions.upperBound)
        let keys = try span.keys(next..<end, key: key)
        let policy = onFailure.after(written.failures.count)
        let lines = try await worker.persistently(within: reconnection) {
          [export, statementLimit] session throws(BatchError) in
          try export.lines(
            for: keys,
            onFailure: policy,
            holding: ChunkBytes.chunkLimit,
            within: statementLimit,
            in: session
          )
        }
        _ = try await writer.append(lines, at: next..<next + lines.count, onFailure: onFailure)
        written.append(lines.result, from: next - positions.lowerBound)
        next += lines.count
      }
      files = try await writer.complete()
    } catch {
      await writer.discard()
      throw error
    }
    if files.isEmpty {
      // The positions count, although no row is left.
      files = [
        ExportPart(
          positions,
          host: host,
          file: "",
          rows: 0,
          bytes: 0,
          sha256: nil,
          keys: (nil, nil)
        )
      ]
    }
    let prepared = Prepared(
      parts: files,
      written: written,
      worker: worker,
      duration: start.duration(to: .now)
    )
    return PreparedChunk(content: prepared, count: positions.count, byteCount: 0)
  }

  func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    let (parts, policy) = (parts, onFailure)
    let lease = try spans.span(of: positions).lease
    // After a broken connection, the ledger has the outcome of the parts. The files stay in any
    // case: they may be recorded although the answer was lost, and the end of the run removes files
    // that are not recorded.
    try await prepared.worker.persistently(within: reconnection) { session throws(BatchError) in
      try parts.record(
        prepared.parts,
        of: positions,
        prepared.written,
        under: lease,
        onFailure: policy,
        in: session
      )
    }
    recorded.withLock { $0 += prepared.parts }
    return Commit(outcomes: prepared.written.outcomes, duration: prepared.duration)
  }
}
#endif
