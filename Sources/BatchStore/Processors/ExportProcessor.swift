package import BatchEngine
package import BatchIdentifiers

/// Exports: workers read rows and write lines, which are appended in the order of the list.
package struct ExportProcessor: ChunkProcessor {
  package let list: PackedIdentifiers
  package let key: EntityKey
  package let export: RowExport
  package let writer: ExportWriter
  package let onFailure: FailurePolicy

  package init(
    list: PackedIdentifiers,
    key: EntityKey,
    export: RowExport,
    writer: ExportWriter,
    onFailure: FailurePolicy
  ) {
    self.list = list
    self.key = key
    self.export = export
    self.writer = writer
    self.onFailure = onFailure
  }

  package var inOrder: Bool { true }
  package var patience: Duration? { nil }

  /// The lines of a chunk and what became of its identifiers.
  package struct Lines: Sendable {
    package let read: ExportedLines
    /// How long it took to read and write them.
    package let duration: Duration
  }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Lines>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<Lines> {
    let lines = try await context.perform { connection throws(BatchError) in
      _ = try export.prepareRows(in: connection)
      let clock = ContinuousClock()
      let start = clock.now
      // The lines of one output are those of one database.
      try connection.refuseIfMoved()
      let keys = try ChunkKeys(list, positions, key: key)
      let read = try export.lines(
        for: keys,
        onFailure: onFailure,
        holding: ChunkBytes.chunkLimit,
        in: connection
      )
      return Lines(read: read, duration: start.duration(to: clock.now))
    }
    let read = lines.read
    return PreparedChunk(content: lines, count: read.outcomes.total, byteCount: read.bytes.count)
  }

  package func commit(
    _ lines: Lines,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await writer.append(lines.read, at: positions, onFailure: onFailure)
    return Commit(outcomes: lines.read.outcomes, duration: lines.duration)
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
