import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchPlatform
import BatchSQLite
import SystemPackage

/// The purpose of a run, new or resumed: a job, or the work of a closure.
package protocol RunWork: Sendable {
  /// Why there is a run.
  var cause: any RunCause { get }

  /// Where the runs of the work are recorded.
  ///
  /// - Throws: `BatchError` if the work or the options of the run are not valid, or another process has the record.
  func record(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> any RunRecord

  /// Resolves the work against its store, which may be open, for one of its runs; a request to stop may interrupt that.
  ///
  /// - Throws: `BatchError` if it does not fit the store; nothing is written then.
  func plan(of run: RunIdentity, stoppedBy stop: StopSwitch, in store: Store?)
    async throws(BatchError)
    -> any RunPlan

  /// What remains after the end of a run: the programs to notify.
  ///
  /// - Throws: `BatchError` of code `otherRun` if the checkpoint belongs to other work.
  func hooks(after checkpoint: Checkpoint) throws(BatchError) -> RunHooks

  /// Resolves the work as far as possible without what only its program has; nil if it cannot.
  func foreseeablePlan(of run: RunIdentity) async throws(BatchError) -> (any RunPlan)?

  /// Refuses the checkpoint of other work, as far as that is known without the store.
  ///
  /// - Throws: `BatchError` of code `otherRun`.
  func refuse(unlessFor checkpoint: Checkpoint) throws(BatchError)
}

extension RunWork {
  package func record(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> any RunRecord {
    try fileRecord(of: run, onEvent)
  }

  /// The record in a file of one process.
  func fileRecord(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> FileRecord {
    // Before the lock beside it is.
    try cause.refuseMissingFolderOfCheckpoint()
    try cause.validate()
    try cause.requireSupport()
    try run.options.check()
    return try FileRecord(of: run, onEvent: onEvent)
  }
}

/// The selection of a run.
package struct RunSelection: Sendable {
  package let list: PackedIdentifiers
  /// Whether the identifiers were given, rather than fetched by the run.
  var isGiven = false
  /// A hash of the identifiers, if they are part of the work's identity.
  var hash: String?

  package init(list: PackedIdentifiers, isGiven: Bool = false, hash: String? = nil) {
    (self.list, self.isGiven, self.hash) = (list, isGiven, hash)
  }

  /// Identifiers that somebody has put together: a row that they name twice is done once.
  package static func given(_ list: PackedIdentifiers) throws(BatchError) -> RunSelection {
    RunSelection(list: try list.distinct(), isGiven: true)
  }
}

/// Work resolved against its store: everything that ``BatchRun`` needs to know of it.
package protocol RunPlan: Sendable {
  /// Why there is a run.
  var cause: any RunCause { get }
  /// The identity of the database that the rows are of.
  var identity: StoreIdentity { get }
  /// The programs to notify about the run.
  var hooks: RunHooks { get }
  /// The number of workers in addition to those requested.
  var spareWorkers: Int { get }

  /// Notes what the run will write besides its rows, and refuses it if that is impossible.
  func describeOutput(in metadata: inout RunMetadata, after previous: Checkpoint?)
    throws(BatchError)

  /// Selects the identifiers, which carry an identity of the store.
  ///
  /// - Parameters:
  ///   - identity: The identity.
  ///   - readers: The number of connections that read at once.
  ///   - stop: Interrupts it.
  /// - Returns: The selection.
  /// - Throws: `BatchError`, of code `interrupted` after a request to stop.
  func select(
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) async throws(BatchError) -> RunSelection

  /// The undo records to keep in the store; nil for none.
  func undo(of run: RunIdentity) throws(BatchError) -> StoredUndo?

  /// Notes the identity of the work, so that the checkpoint resumes no other work.
  func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection)

  /// Refuses the checkpoint of other work.
  ///
  /// - Throws: `BatchError` of code `otherRun` with the difference in words.
  func refuse(unlessFor checkpoint: Checkpoint) async throws(BatchError)

  /// Opens the lane that writes to the store; nil if the run writes nothing there.
  func makeLane() throws(BatchError) -> WriterLane?

  /// Starts what the chunks need, before anything is written.
  func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError)

  /// Makes what does the remaining chunks, and the ledger of those that are done.
  func processor(
    for part: FilePart
  ) async throws(BatchError) -> (any ChunkProcessor, any RunLedger)

  /// What a finished run has left to do for somebody else, in words.
  func leftovers() async -> [String]

  /// The messages since the last call.
  func takeMessages() -> [String]

  /// What the run has been waiting for, at least for this long.
  func wait(of least: Duration) -> String?

  /// Ends what ``start(run:atMost:hasRows:)`` has started.
  func stop() throws(BatchError)

  /// Lets go of the database.
  func close() async
}

/// Work on a store of SQLite.
package protocol StoreRunPlan: RunPlan {
  /// The store.
  var store: Store { get }
}

extension StoreRunPlan {
  package var identity: StoreIdentity { store.identity }

  package func close() async { await store.close() }

  /// Fetches the identifiers of a new run.
  package func fetch(
    _ query: IdentifierQuery,
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) async throws(BatchError) -> PackedIdentifiers {
    let fetch = IdentifierFetch(query, from: store, readers: readers, spill: BlockSpill())
    return try await stop.interruptible(at: store.path, by: { fetch.interrupt() }) {
      () throws(BatchError) in
      try await fetch.run(store: identity)
    }
  }
}

extension RunPlan {
  package func wait(of least: Duration) -> String? { nil }

  package func leftovers() async -> [String] { [] }

  package func undo(of run: RunIdentity) throws(BatchError) -> StoredUndo? { nil }

  /// Where done chunks are recorded.
  package var ledger: LedgerPlace { cause.writes && cause.keepsRecord ? .store : .file }
}
