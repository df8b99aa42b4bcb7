import BatchIdentifiers
import BatchJobs
import BatchRuns
import BatchSQLite

extension LoadPlan: StoreRunPlan {
  package var cause: any RunCause { job }
  package var spareWorkers: Int { 0 }
  package var statement: String? { insertion.sql }

  package func describeOutput(in metadata: inout RunMetadata, after previous: Checkpoint?) {}

  package func select(
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) -> RunSelection {
    RunSelection(list: list(identity), hash: files.contentHash)
  }

  package var plannedSchema: [String] { expected.planned }

  package func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection) {
    metadata.fingerprint = fingerprint().text
    metadata.schema = expected.recorded
    metadata.parameters = parameters.recorded
    metadata.loaded = files
  }

  package func makeLane() throws(BatchError) -> WriterLane? { try job.makeLane(in: store) }

  package func start(run: String, atMost workers: Int, hasRows: Bool) {}

  package func processor(
    for part: FilePart
  ) async throws(BatchError) -> (any ChunkProcessor, any RunLedger) {
    guard let lane = part.lane else {
      preconditionFailure("records are loaded without a writer lane")
    }
    try await Backoff(job.retry).repeating { () throws(BatchError) in
      try await lane.expect(expected)
    }
    let processor = LoadProcessor(
      reader,
      part.list,
      into: insertion,
      of: store,
      by: lane,
      onFailure: part.onFailure,
      recording: job.undo == nil ? nil : part.session.run
    )
    return (processor, lane)
  }

  package func takeMessages() -> [String] { [] }

  package func leftovers() async -> [String] {
    let words = try? await store.connection(label: "batch.plan").compute {
      [files, load] () throws(BatchError) in files.additions(for: load)
    }
    return words ?? []
  }

  package func stop() {}
}
