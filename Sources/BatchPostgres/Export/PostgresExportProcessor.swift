#if PostgreSQL
package import BatchEngine
package import BatchIdentifiers

/// Exports to one file: workers read rows and encode lines, which are appended in the order of the list.
package struct PostgresExportProcessor: ChunkProcessor {
  private let list: PackedIdentifiers
  private let export: PostgresExport
  private let writer: ExportWriter
  private let onFailure: FailurePolicy
  private let statementLimit: Duration
  /// How long to retry a broken connection.
  private let reconnection: Duration

  package init(
    list: PackedIdentifiers,
    export: PostgresExport,
    writer: ExportWriter,
    onFailure: FailurePolicy,
    statementLimit: Duration,
    reconnectingFor reconnection: Duration
  ) {
    self.list = list
    self.export = export
    self.writer = writer
    self.onFailure = onFailure
    self.statementLimit = statementLimit
    self.reconnection = reconnection
  }

  package var inOrder: Bool { true }
  package var patience: Duration? { nil }

  /// The lines of a chunk and the outcomes of its identifiers.
  package struct Lines: Sendable {
    fileprivate let read: PostgresExport.Lines
    /// How long it took to read the rows and encode the lines.
    fileprivate let duration: Duration
  }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Lines>,
    in worker: PostgresConnection
  ) async throws(BatchError) -> PreparedChunk<Lines> {
    let start = ContinuousClock.now
    let keys = try RowKeys(list, positions, key: export.key)
    let (export, policy, limit) = (export, onFailure, statementLimit)
    let read = try await worker.persistently(within: reconnection) { session throws(BatchError) in
      try export.lines(
        for: keys,
        onFailure: policy,
        holding: ChunkBytes.chunkLimit,
        within: limit,
        in: session
      )
    }
    let lines = Lines(read: read, duration: start.duration(to: .now))
    return PreparedChunk(content: lines, count: read.count, byteCount: read.bytes.count)
  }

  package func commit(
    _ lines: Lines,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    let exported = ExportedLines(lines.read)
    try await writer.append(exported, at: positions, onFailure: onFailure)
    return Commit(outcomes: exported.outcomes, duration: lines.duration)
  }

  package func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    try await writer.synchronize(&progress, failedCount: failedCount)
  }

  package func finish(_ progress: inout RunProgress) async throws(BatchError) {
    try await writer.publish()
  }
}

extension ExportedLines {
  init(_ lines: PostgresExport.Lines) {
    self.init()
    bytes = lines.bytes
    succeeded = lines.written.succeeded
    passedOver = lines.written.passedOver
    failures = lines.written.failures
  }
}
#endif
