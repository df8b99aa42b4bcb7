package import BatchRuns
package import BatchIdentifiers

/// Exports rows: workers read them and write lines, which are appended in list order.
package struct ExportProcessor: ChunkProcessor {
  package let store: Store
  package let list: PackedIdentifiers
  package let key: EntityKey
  package let export: RowExport
  package let writer: ExportWriter
  package let onFailure: FailurePolicy

  package init(
    of store: Store,
    list: PackedIdentifiers,
    key: EntityKey,
    export: RowExport,
    writer: ExportWriter,
    onFailure: FailurePolicy
  ) {
    self.store = store
    self.list = list
    self.key = key
    self.export = export
    self.writer = writer
    self.onFailure = onFailure
  }

  package var inOrder: Bool { true }
  package var handlerTimeLimit: Duration? { nil }
  package var workerLimit: Int? { export.copiesRows ? 1 : nil }

  package func makeWorker(_ label: String) -> StoreConnection { store.makeWorker(label) }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<ExportedLines>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<ExportedLines> {
    let lines = try await context.perform { connection throws(BatchError) in
      _ = try export.prepareRows(in: connection)
      let clock = ContinuousClock()
      let start = clock.now
      // All lines of an output must come from one database.
      try connection.refuseIfMoved()
      let keys = try ChunkKeys(list, positions, key: key)
      var lines = try export.lines(
        for: keys,
        onFailure: onFailure,
        holding: ChunkBytes.chunkLimit,
        in: connection
      )
      lines.duration = start.duration(to: clock.now)
      return lines
    }
    return PreparedChunk(content: lines, count: lines.count, byteCount: lines.bytes.count)
  }

  package func commit(
    _ lines: ExportedLines,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await writer.append(lines, at: positions, onFailure: onFailure)
  }
}
