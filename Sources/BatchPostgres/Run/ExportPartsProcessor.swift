#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers
import SystemPackage

/// Exports to parts: each worker reads the rows of a chunk piece by piece into a file of its own,
/// and records the file once it is on disk.
///
/// Chunks are as large as spans, so there are few files, but only a small piece is in memory at a
/// time.
struct ExportPartsProcessor: ChunkProcessor {
  struct Prepared: Sendable {
    let part: ExportPart
    let written: ChunkResult
    let worker: PostgresConnection
    let duration: Duration
  }

  let export: PostgresExport
  let folder: ExportFolder
  let form: ExportForm
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
  /// One file for each span.
  var chunkSize: Int? { RunPolicy.chunkSizeLimit }

  func makeWorker(_ label: String) -> PostgresConnection { connect(label) }

  func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in worker: PostgresConnection
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let start = ContinuousClock.now
    let span = try spans.span(of: positions)
    let name = parts.fileName(of: positions, form)
    let file = try folder.makeFile(named: name)
    var written = ChunkResult()
    var bytes = 0
    do throws(BatchError) {
      // Only the first file has the header, so that the concatenated files are one export.
      if positions.lowerBound == 0 {
        try file.write(export.header)
        bytes = export.header.count
      }
      var next = positions.lowerBound
      var frames = LineFrames(export.format.compression)
      while next < positions.upperBound {
        let end = min(next + size, positions.upperBound)
        let (piece, result) = try await piece(
          span.keys(next..<end, key: key),
          after: written.failures.count,
          isLast: end == positions.upperBound,
          &frames,
          in: worker
        )
        try file.write(piece)
        bytes += piece.count
        written.append(result, from: next - positions.lowerBound)
        next += result.outcomes.total
      }
      if bytes == 0 {
        let empty = export.format.compression.frame(of: [])
        try file.write(empty)
        bytes = empty.count
      }
      try file.publish(overwriting: true)
    } catch {
      file.remove()
      throw error
    }
    let part = ExportPart(
      positions,
      host: host,
      file: name,
      rows: written.succeeded,
      bytes: bytes
    )
    let prepared = Prepared(
      part: part,
      written: written,
      worker: worker,
      duration: start.duration(to: .now)
    )
    return PreparedChunk(content: prepared, count: positions.count, byteCount: 0)
  }

  /// What comes next in a file: the lines of some keys, or the frames that they fill.
  private func piece(
    _ keys: RowKeys,
    after failureCount: Int,
    isLast: Bool,
    _ frames: inout LineFrames,
    in worker: PostgresConnection
  ) async throws(BatchError) -> ([UInt8], ChunkResult) {
    let (export, limit, policy) = (export, statementLimit, onFailure.after(failureCount))
    // The worker's thread compresses too.
    let (begun, piece, result) = try await worker.persistently(within: reconnection) {
      [frames] session throws(BatchError) in
      let lines = try export.lines(
        for: keys,
        onFailure: policy,
        holding: ChunkBytes.chunkLimit,
        within: limit,
        in: session
      )
      guard export.format.compression != .none else { return (frames, lines.bytes, lines.result) }
      var (frames, piece) = (frames, [UInt8]())
      try frames.append(lines.bytes) { frame, _ in piece += frame.bytes }
      if isLast, lines.count == keys.count, let frame = frames.takeGroup() { piece += frame.bytes }
      return (frames, piece, lines.result)
    }
    frames = begun
    return (piece, result)
  }

  func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    let (parts, policy) = (parts, onFailure)
    let lease = try spans.span(of: positions).lease
    // After a broken connection, the ledger has the outcome of the part. The file stays in any
    // case: it may be recorded although the answer was lost, and the end of the run removes files
    // that are not recorded.
    try await prepared.worker.persistently(within: reconnection) { session throws(BatchError) in
      try parts.record(
        prepared.part,
        prepared.written,
        under: lease,
        onFailure: policy,
        in: session
      )
    }
    recorded.withLock { $0.append(prepared.part) }
    return Commit(outcomes: prepared.written.outcomes, duration: prepared.duration)
  }
}
#endif
