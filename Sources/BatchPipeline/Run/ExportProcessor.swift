import BatchIdentifiers
import BatchStore

/// Exports: workers read rows and write lines, which are appended in the order of the list.
struct ExportProcessor: ChunkProcessor {
  let list: IdentifierList
  let key: EntityKey
  let export: RowExport
  let writer: ExportWriter

  var inOrder: Bool { true }

  /// The lines of a chunk and what became of its identifiers.
  struct Lines: Sendable {
    let bytes: [UInt8]
    let outcomes: Outcomes
    /// How long it took to read and write them.
    let duration: Duration
  }

  func prepare(
    _ positions: Range<Int>,
    in context: StoreConnection
  ) async throws(BatchError) -> Lines {
    try await context.perform { connection throws(BatchError) in
      let clock = ContinuousClock()
      let start = clock.now
      let keys = try ChunkKeys(list, positions, key: key)
      let (bytes, outcomes) = try export.lines(for: keys, in: connection)
      return Lines(bytes: bytes, outcomes: outcomes, duration: start.duration(to: clock.now))
    }
  }

  func commit(
    _ lines: Lines,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await writer.append(lines.bytes, at: positions, lines.outcomes)
    return Commit(outcomes: lines.outcomes, duration: lines.duration)
  }

  func synchronize(
    _ progress: inout RunProgress,
    done: DoneRanges,
    failedCount: Int?
  ) async throws(BatchError) -> [FailedIdentifier]? {
    // The writer may be a chunk ahead of `done`; what is recorded must be of one moment.
    (progress.done, progress.outputBytes, progress.outputIdentity) = try await writer.synchronize()
    return nil
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {
    try await writer.publish()
  }
}
