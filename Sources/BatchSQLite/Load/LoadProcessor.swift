package import BatchRuns
package import BatchIdentifiers
package import BatchJobs

/// Loads records: workers read and decode them, and the writer lane inserts them.
package struct LoadProcessor: ChunkProcessor {
  private let reader: RecordReader
  private let list: PackedIdentifiers
  private let insertion: RowInsertion
  private let store: Store
  private let lane: WriterLane
  private let onFailure: FailurePolicy
  /// The run whose changes are recorded for undo; nil to record none.
  private let recordedRun: String?

  package init(
    _ reader: RecordReader,
    _ list: PackedIdentifiers,
    into insertion: RowInsertion,
    of store: Store,
    by lane: WriterLane,
    onFailure: FailurePolicy,
    recording run: String?
  ) {
    recordedRun = run
    self.reader = reader
    self.list = list
    self.insertion = insertion
    self.store = store
    self.lane = lane
    self.onFailure = onFailure
  }

  /// Rows get their rowids in the order of the records.
  package var inOrder: Bool { true }
  package var handlerTimeLimit: Duration? { nil }

  package func makeWorker(_ label: String) -> StoreConnection { store.makeWorker(label) }

  package func prepare(
    _ positions: Range<Int>,
    _ attempt: Attempt<ReadRecords>,
    in context: StoreConnection
  ) async throws(BatchError) -> PreparedChunk<ReadRecords> {
    let read = try await context.compute { () throws(BatchError) in
      // In a retry of failures, the list has only these.
      let numbers = try list.integers(in: positions).map { Int($0) - 1 }
      return try reader.records(numbered: numbers, holding: ChunkBytes.chunkLimit)
    }
    return PreparedChunk(content: read, count: read.count, byteCount: read.values.byteCount)
  }

  package func commit(
    _ read: ReadRecords,
    at positions: Range<Int>
  ) async throws(BatchError) -> Commit {
    try await lane.commit(positions, onFailure: onFailure) {
      [insertion, reader, recordedRun] (lane: isolated WriterLane, onFailure) throws(BatchError) in
      if recordedRun != nil { try lane.recorder.begin() }
      let written = try insertion.write(
        read,
        place: { reader.place($0) },
        onFailure: onFailure,
        in: lane.connection
      )
      if let recordedRun { try lane.recorder.record(ofRun: recordedRun) }
      return written
    }
  }
}
