#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// Exports to one file: workers read rows and encode lines, which are appended in the order of the list.
package struct PostgresExportProcessor: ChunkProcessor {
  private let list: PackedIdentifiers
  private let export: PostgresExport
  private let writer: ExportWriter
  private let onFailure: FailurePolicy
  private let statementLimit: Duration
  private let reconnection: Duration
  package let workerLimit: Int?
  private let connect: PostgresConnection.Connecting

  package init(
    list: PackedIdentifiers,
    export: PostgresExport,
    writer: ExportWriter,
    onFailure: FailurePolicy,
    statementLimit: Duration,
    reconnectingFor reconnection: Duration,
    workerLimit: Int?,
    by connect: @escaping PostgresConnection.Connecting
  ) {
    self.list = list
    self.export = export
    self.writer = writer
    self.onFailure = onFailure
    self.statementLimit = statementLimit
    self.reconnection = reconnection
    self.workerLimit = workerLimit
    self.connect = connect
  }

  package var inOrder: Bool { true }
  package var handlerTimeLimit: Duration? { nil }

  package func makeWorker(_ label: String) -> PostgresConnection { connect(label) }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<ExportedLines>,
    in worker: PostgresConnection
  ) async throws(BatchError) -> PreparedChunk<ExportedLines> {
    let start = ContinuousClock.now
    let keys = try RowKeys(list, positions, key: export.key)
    let (list, export, policy, limit) = (list, export, onFailure, statementLimit)
    var lines = try await worker.persistently(within: reconnection) { session throws(BatchError) in
      let places = try RowPlaces(of: list, positions, key: export.key, in: export.table, session)
      return try export.lines(
        for: keys.near(places.pages(of: positions)),
        onFailure: policy,
        holding: ChunkBytes.chunkLimit,
        within: limit,
        in: session
      )
    }
    lines.duration = start.duration(to: .now)
    return PreparedChunk(content: lines, count: lines.count, byteCount: lines.bytes.count)
  }

  package func commit(
    _ lines: ExportedLines,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await writer.append(lines, at: positions, onFailure: onFailure)
  }
}
#endif
