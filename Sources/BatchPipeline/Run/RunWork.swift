import BatchEngine
import BatchIdentifiers
import BatchStore
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a run is for, whether it is a new one or is resumed: a job, or the work of a closure.
protocol RunWork: Sendable {
  /// Resolves the work against its store, which may be open, for one of its runs.
  ///
  /// - Throws: `BatchError` if it does not fit the store; nothing is written then.
  func plan(of run: RunIdentity, in store: Store?) async throws(BatchError) -> any RunPlan

  /// What is left to do after the end of a run: the programs to notify.
  ///
  /// - Throws: `BatchError` of code `otherRun` if the checkpoint is that of other work.
  func hooks(after checkpoint: Checkpoint) throws(BatchError) -> RunHooks

  /// Resolves the work as far as that can be done without what only its program has; nil if it cannot.
  func foreseeablePlan(of run: RunIdentity) async throws(BatchError) -> (any RunPlan)?

  /// Refuses the checkpoint of other work, as far as that can be told without the store.
  ///
  /// - Throws: `BatchError` of code `otherRun`.
  func refuse(unlessFor checkpoint: Checkpoint) throws(BatchError)
}

/// What tells a run from all others.
struct RunIdentity: Sendable {
  /// Its UUID.
  let run: String
  /// When it began first, as an ISO 8601 timestamp in UTC.
  let startedAt: String
  /// How many microseconds of that second had passed; nil of one that an earlier version began.
  let startedMicroseconds: Int?

  /// A run that begins now.
  init() {
    run = UUID().uuidString
    let now = Date.now.timeIntervalSince1970
    startedAt = Date(timeIntervalSince1970: now.rounded(.down)).formatted(.iso8601)
    startedMicroseconds = Int((now - now.rounded(.down)) * 1_000_000)
  }

  /// A run that begins at a time of somebody else's clock.
  init(startedAt: String) {
    run = UUID().uuidString.lowercased()
    self.startedAt = startedAt
    startedMicroseconds = nil
  }

  /// When some time has passed since it began, as an ISO 8601 timestamp in UTC.
  func time(after duration: Duration) -> String? {
    let start = try? Date(startedAt, strategy: .iso8601)
    return start?.addingTimeInterval(duration / .seconds(1)).formatted(.iso8601)
  }

  /// The run of a checkpoint.
  init(_ metadata: RunMetadata) {
    run = metadata.run
    startedAt = metadata.startedAt
    startedMicroseconds = metadata.startedMicroseconds
  }
}

/// What a run selects.
struct RunSelection: Sendable {
  let list: PackedIdentifiers
  /// Whether the identifiers were given, and not fetched by the run.
  var isGiven = false
  /// A hash of the identifiers, where they are part of what the work is.
  var hash: String?
}

/// Work that was resolved against its store: all that ``BatchRun`` needs to know of it.
protocol RunPlan: Sendable {
  /// The names, files and settings of the run.
  var job: Job { get }
  /// The identity of the database that the rows are of.
  var identity: StoreIdentity { get }
  /// The programs that are told what becomes of the run.
  var hooks: RunHooks { get }
  /// How many workers there are beside those that were asked for.
  var spareWorkers: Int { get }

  /// Notes what the run will write beside its rows, and refuses it if that cannot be.
  func describeOutput(in metadata: inout RunMetadata, after previous: Checkpoint?)
    throws(BatchError)

  /// Selects the identifiers, which carry an identity of the store.
  func select(for run: BatchRun, _ identity: StoreIdentity) async throws(BatchError) -> RunSelection

  /// What the store is told so that the run can be undone; nil if that is not wanted.
  func undo(of run: RunIdentity) throws(BatchError) -> StoredUndo?

  /// Notes what the work is, so that no other is resumed by the checkpoint.
  func describeWork(in metadata: inout RunMetadata, _ selection: RunSelection)

  /// Refuses the checkpoint of other work.
  ///
  /// - Throws: `BatchError` of code `otherRun` with the difference in words.
  func refuse(unlessFor checkpoint: Checkpoint) async throws(BatchError)

  /// Opens the lane that writes to the store; nil if the run writes nothing there.
  func makeLane() throws(BatchError) -> WriterLane?

  /// Starts what the chunks need, before anything is written.
  func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError)

  /// Has the chunks done that are left.
  func carryOut(_ execution: RunExecution) async throws(BatchError) -> RunSummary

  /// What there is to tell since the last call.
  func takeMessages() -> [String]

  /// Ends what ``start(run:atMost:hasRows:)`` has started.
  func stop() throws(BatchError)

  /// Lets go of the database.
  func close() async
}

/// Work on a store of SQLite.
protocol StoreRunPlan: RunPlan {
  /// The store.
  var store: Store { get }
}

extension StoreRunPlan {
  var identity: StoreIdentity { store.identity }

  func close() async { await store.close() }
}

extension RunPlan {
  func undo(of run: RunIdentity) throws(BatchError) -> StoredUndo? { nil }

  /// Where done chunks are recorded.
  var ledger: LedgerPlace {
    job.action.writes && job.checkpoint.ledger == .store && job.keepsRecord ? .store : .file
  }
}
