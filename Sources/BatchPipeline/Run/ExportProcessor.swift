import BatchIdentifiers
import BatchStore

/// Exports: workers read rows and write lines, which are appended in the order of the list.
struct ExportProcessor: ChunkProcessor {
  let list: IdentifierList
  let key: EntityKey
  let export: RowExport
  let writer: ExportWriter
  /// How many identifiers of the run may fail.
  let failureLimit: Int

  var inOrder: Bool { true }

  /// The lines of a chunk and what became of its identifiers.
  struct Lines: Sendable {
    let read: RowExport.Lines
    /// How long it took to read and write them.
    let duration: Duration
  }

  func prepare(
    _ positions: Range<Int>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<Lines> {
    let lines = try await context.perform { connection throws(BatchError) in
      let clock = ContinuousClock()
      let start = clock.now
      // The lines of one output are those of one database.
      try connection.refuseIfMoved()
      let keys = try ChunkKeys(list, positions, key: key)
      let read = try export.lines(
        for: keys,
        failing: failureLimit,
        holding: ChunkBytes.chunkLimit,
        in: connection
      )
      return Lines(read: read, duration: start.duration(to: clock.now))
    }
    let read = lines.read
    return PreparedChunk(content: lines, count: read.outcomes.total, byteCount: read.bytes.count)
  }

  func commit(
    _ lines: Lines,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await writer.append(lines.read, at: positions, failing: failureLimit)
    return Commit(outcomes: lines.read.outcomes, duration: lines.duration)
  }

  func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    // The writer may be a chunk ahead of `done`; what is recorded must be of one moment.
    let written = try await writer.synchronize()
    progress.done = written.done
    progress.outputBytes = written.byteCount
    progress.outputIdentity = written.identity
    return written.failed.count == failedCount ? nil : written.failed
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {
    try await writer.publish()
  }
}
