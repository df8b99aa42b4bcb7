import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// Loads a sequence of records: its one worker reads them, and the lane inserts them together with
/// the record that their chunk is done.
struct RecordProcessor: ChunkProcessor {
  let source: RecordSource
  let entity: ModelEntity
  let container: ModelContainer
  /// The indexes of the records to load; nil for each at its own position.
  let wanted: [Int]?
  let readBefore: RunProgress.ReadRecords?
  let lane: WriterLane
  let onFailure: FailurePolicy
  /// The run whose changes are kept for an undo; nil to keep none.
  let recordedRun: String?

  struct Prepared: Sendable {
    let chunk: RecordChunk
    let feed: RecordFeed
  }

  /// A later record may change the row of an earlier one.
  var inOrder: Bool { true }
  var handlerTimeLimit: Duration? { nil }
  var workerLimit: Int? { 1 }

  func makeWorker(_ label: String) -> RecordFeed {
    RecordFeed(source, into: entity, of: container, only: wanted, after: readBefore)
  }

  func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<Prepared>,
    in feed: RecordFeed
  ) async throws(BatchError) -> PreparedChunk<Prepared> {
    let chunk = try await feed.chunk(at: positions)
    return PreparedChunk(
      content: Prepared(chunk: chunk, feed: feed),
      count: chunk.indexes.count,
      byteCount: chunk.rows.chunk.heldBytes
    )
  }

  func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    let chunk = prepared.chunk
    var commit = try await lane.commit(positions, onFailure: onFailure) {
      [source, entity, container, recordedRun]
      (lane: isolated WriterLane, onFailure) throws(BatchError) in
      if recordedRun != nil { try lane.recorder.begin() }
      let report = BatchReport(.status, entity, .insert, in: container)
      report.beginTransaction(by: nil, in: lane.connection)
      let insertion = try BatchInsertion(
        chunk.rows,
        atOnce: .max,
        onConflict: source.resolution,
        report,
        lane.connection,
        after: positions.lowerBound,
        indexes: chunk.indexes
      )
      let written = try insertion.write(onFailure: onFailure)
      if let recordedRun { try lane.recorder.record(ofRun: recordedRun) }
      return written
    }
    commit.readHash = chunk.readHash
    await prepared.feed.committed(positions)
    return commit
  }
}
