import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchPlatform
import BatchSQLite
import SystemPackage

package protocol RunWork: Sendable {
  var cause: any RunCause { get }

  /// Where the runs of the work are recorded.
  ///
  /// - Throws: `BatchError` if the work or the options are not valid, or if another process holds
  ///   the record.
  func record(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> any RunRecord

  /// Resolves the work against its store for a run; a stop may interrupt this.
  ///
  /// The store may already be open. Nothing is written if this throws because the work does not
  /// fit.
  func plan(of run: RunIdentity, stoppedBy stop: StopSwitch, in store: Store?)
    async throws(BatchError)
    -> any RunPlan

  /// The hooks that remain to be run after the end of a run.
  ///
  /// - Throws: `BatchError` of code `otherRun` if the checkpoint belongs to other work.
  func hooks(after checkpoint: Checkpoint) throws(BatchError) -> RunHooks

  /// The plan as far as it is possible without parts that only the program has; nil if it is not.
  func foreseeablePlan(of run: RunIdentity) async throws(BatchError) -> (any RunPlan)?

  /// Refuses the checkpoint of other work with `otherRun`, as far as this is known without the
  /// store.
  func refuse(unlessFor checkpoint: Checkpoint) throws(BatchError)
}

extension RunWork {
  package func record(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> any RunRecord {
    try fileRecord(of: run, onEvent)
  }

  func fileRecord(
    of run: BatchRun,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) throws(BatchError) -> FileRecord {
    // Must precede the lock, which is beside the checkpoint.
    try cause.refuseMissingFolderOfCheckpoint()
    try cause.validate()
    try cause.requireSupport()
    try run.options.check()
    return try FileRecord(of: run, onEvent: onEvent)
  }
}

package struct RunSelection: Sendable {
  package let list: PackedIdentifiers
  /// Whether the identifiers were given, rather than fetched by the run.
  var isGiven = false
  /// A hash of the identifiers if they are part of the work's identity.
  var hash: String?

  package init(list: PackedIdentifiers, isGiven: Bool = false, hash: String? = nil) {
    (self.list, self.isGiven, self.hash) = (list, isGiven, hash)
  }

  /// A selection given by a caller; a row that occurs twice in it is processed once.
  package static func given(_ list: PackedIdentifiers) throws(BatchError) -> RunSelection {
    RunSelection(list: try list.distinct(), isGiven: true)
  }
}

/// Work resolved against its store: everything that ``BatchRun`` needs to know about it.
package protocol RunPlan: Sendable {
  var cause: any RunCause { get }
  var identity: StoreIdentity { get }
  var hooks: RunHooks { get }
  var spareWorkers: Int { get }

  /// Records the output in the metadata, and refuses one that cannot be written.
  func describeOutput(in metadata: inout RunMetadata, after previous: Checkpoint?)
    throws(BatchError)

  /// Selects the identifiers, which contain `identity`; a stop interrupts this.
  func select(
    _ identity: StoreIdentity,
    readers: Int,
    stoppedBy stop: StopSwitch
  ) async throws(BatchError) -> RunSelection

  /// The undo records to keep in the store; nil for none.
  func undo(of run: RunIdentity) throws(BatchError) -> StoredUndo?

  /// The positions to work on, in parts that no chunk crosses.
  func parts(of remaining: [Range<Int>]) -> [Range<Int>]

  /// Records the identity of the work, so that the checkpoint resumes no other work.
  func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection)

  /// Refuses the checkpoint of other work with `otherRun`, and the difference in words.
  func refuse(unlessFor checkpoint: Checkpoint) async throws(BatchError)

  /// Opens the lane that writes to the store; nil if the run writes nothing there.
  func makeLane() throws(BatchError) -> WriterLane?

  /// Starts everything that chunks need, before anything is written.
  func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError)

  /// Makes the processor of the remaining chunks, and the ledger of those that are done.
  func processor(
    for part: FilePart
  ) async throws(BatchError) -> (any ChunkProcessor, any RunLedger)

  /// The first difference between the rows that a run has changed and its undo records, in words.
  func differenceFromRecords(ofRun run: String) async throws(BatchError) -> String?

  /// Leftovers of a finished run that others must deal with, in words.
  func leftovers() async -> [String]

  func takeMessages() -> [String]

  /// What the run has been waiting for, if it has waited at least this long.
  func wait(of least: Duration) -> String?

  /// The statements of a run, which its digest covers.
  var statements: [String] { get }

  /// The facts of the schema that its digest covers.
  var plannedSchema: [String] { get }

  /// The range of rows of an export of what changed; nil for any other work.
  var increment: Increment? { get }

  /// Notes in the store, before a new run has its rows, from where on it needs a log of changes.
  func enterIncrement() async throws(BatchError)

  /// The SQL for a chunk; nil if there is none.
  var statement: String? { get }

  /// Ends everything that ``start(run:atMost:hasRows:)`` has started.
  func stop() throws(BatchError)

  func close() async
}

package protocol StoreRunPlan: RunPlan {
  var store: Store { get }
}

extension StoreRunPlan {
  package var identity: StoreIdentity { store.identity }

  package func close() async { await store.close() }

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

  package var statements: [String] { [] }

  package var plannedSchema: [String] { [] }

  package var increment: Increment? { nil }

  package func enterIncrement() async throws(BatchError) {}

  package var statement: String? { nil }

  package func differenceFromRecords(ofRun run: String) async throws(BatchError) -> String? { nil }

  package func leftovers() async -> [String] { [] }

  package func parts(of remaining: [Range<Int>]) -> [Range<Int>] { remaining }

  package func undo(of run: RunIdentity) throws(BatchError) -> StoredUndo? { nil }

  package var ledger: LedgerPlace { cause.writes && cause.keepsRecord ? .store : .file }
}
