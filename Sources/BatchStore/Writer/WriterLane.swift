package import BatchEngine
package import BatchIdentifiers
import BatchPlatform
import Synchronization

/// The settings of a lane.
package struct WriterConfiguration: Sendable {
  /// When a commit waits for the disk.
  package var synchronous = Synchronous.normal
  /// Whether to switch the database to write-ahead logging.
  package var usesWriteAheadLog = true
  /// Whether foreign keys are enforced, which is not SQLite's default.
  package var enforcesForeignKeys = false
  /// Whether triggers run.
  package var runsTriggers = true
  /// How long other writers may wait for a chunk; nil to ignore them.
  package var courtesyTarget: Duration?
  /// The size of the write-ahead log in bytes above which it is checkpointed.
  package var checkpointBytes = 8 << 20

  /// Makes the default settings.
  package init() {}

  /// Makes checkpoints happen well before the log is long enough to hold a run.
  package mutating func limitCheckpoints(to maximumWAL: Int64) {
    checkpointBytes = min(checkpointBytes, Int(clamping: maximumWAL / 2))
  }
}

/// The only writer to a store: SQLite has one writer, so a run has one too.
///
/// Each chunk is a transaction with the change and its row in the ledger: methods called `commit`
/// end one, those called `write` run inside it.
package actor WriterLane {
  private let executor: ThreadExecutor
  package let connection: Connection
  let configuration: WriterConfiguration
  private let pageSize: Int
  /// The checkpoints of the log.
  var checkpoints: LogCheckpoints
  private(set) var courtesy: Courtesy
  /// SQLite's database version when the lane last left a gap.
  private var courtesyVersion: Int64
  /// Whether statement journals are in memory; SQLite would create and remove a file for each
  /// chunk.
  private var keepsJournalsInMemory = false
  private var ledger: Ledger?
  /// SQLite's database version when the ledger was last verified.
  private var ledgerVersion: Int64 = 0
  private let owner = RunOwner()
  /// What the schema must be like; nil for anything.
  var expected: ExpectedSchema?
  /// Records the changes of chunks for undo, if the run wants that.
  package let recorder: ChangeRecorder
  /// Chunks that wait to be written.
  private var waiting: [WaitingChunk] = []
  /// Whether ``commitAllWaiting()`` runs, or will.
  private var isCommitting = false
  /// Whether it has committed a chunk.
  private(set) var hasWritten = false
  /// SQLite's database version at the last look.
  private var lookVersion: Int64
  /// The look that last found a commit of another connection.
  private var lastForeignCommit = 0
  private nonisolated let looks = Atomic(0)
  nonisolated let hasScattered = Atomic(false)

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Whether Litestream replicates the database and decides when the log restarts.
  ///
  /// It copies the log, and holds a read lock that prevents an earlier restart
  /// (<https://litestream.io/how-it-works/>).
  package nonisolated let leavesLogToLitestream: Bool

  nonisolated let path: String

  /// The lane's waits for other connections' locks.
  package nonisolated let lockWait: LockWait

  /// Interrupts the lane's running statement, from any thread.
  package nonisolated let interrupter: Interrupter

  /// Opens the write connection of a store.
  ///
  /// - Throws: `BatchError` of code `readOnly` if the database cannot be written.
  package init(
    path: String,
    options: Connection.Options,
    configuration: WriterConfiguration
  ) throws(BatchError) {
    executor = ThreadExecutor(label: "batch.writer")
    try executor.requireThread()
    let connection = try Connection(path: path, options: options)
    guard !connection.isReadOnly else {
      throw BatchError(
        .readOnly,
        "the database is read-only",
        at: path,
        remedy: "check the permissions of the file and of its folder"
      )
    }
    if configuration.usesWriteAheadLog {
      // On a network file system, which refuses it, the old journal is used: slower but as safe.
      _ = try connection.useWriteAheadLog()
    }
    try connection.setSynchronous(configuration.synchronous)
    if configuration.enforcesForeignKeys { try connection.execute("PRAGMA foreign_keys = ON") }
    if !configuration.runsTriggers { try connection.disableTriggers() }
    guard case .integer(let page) = try connection.value("PRAGMA page_size") else {
      throw BatchError(.notADatabase, "the database has no page size", at: path)
    }
    pageSize = Int(page)
    checkpoints = LogCheckpoints(
      past: max(1, configuration.checkpointBytes / Int(page)),
      passes: StoreConnection(label: "batch.checkpointer", path: path, options: options)
    )
    courtesy = Courtesy(target: configuration.courtesyTarget)
    interrupter = connection.interrupter
    lockWait = connection.lockWait
    leavesLogToLitestream = try connection.isReplicatedByLitestream()
    // So that commits before the first chunk count as others' writes.
    lookVersion = try connection.dataVersion()
    courtesyVersion = lookVersion
    self.configuration = configuration
    self.connection = connection
    recorder = ChangeRecorder(connection)
    self.path = path
  }

  // MARK: The store's own tables

  /// Gives the store the UUID of `proposal` if it has none, and creates the ledger's tables.
  package func prepareStore(
    _ proposal: StoreIdentity = .made()
  ) throws(BatchError) -> StoreIdentity {
    try connection.transaction(.immediate) { () throws(BatchError) in
      try Ledger.createTables(in: connection)
      return try StoreIdentity.establish(proposal, in: connection)
    }
  }

  /// Enters a new run in the ledger, which then belongs to this lane.
  ///
  /// - Parameters:
  ///   - run: The run.
  ///   - list: Its identifiers, with the metadata of its checkpoint, if the store is to keep them
  ///     too.
  /// - Throws: `BatchError` of code `alreadyRunning` or `unfinishedRun` if another run of the job
  ///   prevents it, or errors of SQLite; then nothing is entered.
  package func begin(
    _ run: RunDescription,
    keeping list: (list: PackedIdentifiers, metadata: [UInt8])? = nil
  ) throws(BatchError) {
    try connection.transaction(.immediate) { () throws(BatchError) in
      try StoredRun.enter(run, by: owner, in: connection)
      if let list {
        try StoredList.enter(
          list.list,
          metadata: list.metadata,
          ofRun: run.identifier,
          in: connection
        )
      }
      ledger = Ledger(of: run.identifier)
      ledgerVersion = try connection.dataVersion()
    }
  }

  /// Removes a job's finished runs, and some others, from the ledger.
  ///
  /// - Parameters:
  ///   - job: The job's name.
  ///   - runs: Runs to remove even if unfinished.
  ///   - kept: A run to keep in any case.
  ///   - oldestEnd: The earliest end of runs whose IDs are remembered; nil for all.
  /// - Returns: The number of removed runs.
  /// - Throws: Errors of SQLite.
  package func removeRuns(
    ofJob job: String,
    and runs: [String],
    but kept: String?,
    before oldestEnd: String? = nil
  ) throws(BatchError) -> Int {
    try connection.transaction(.immediate) { () throws(BatchError) in
      try Ledger.remove(ofJob: job, and: runs, but: kept, before: oldestEnd, in: connection)
    }
  }

  /// Adopts the ledger of a run, which then belongs to this lane.
  ///
  /// - Returns: The done ranges, or nil if the store does not know the run.
  /// - Throws: `BatchError` of code `alreadyRunning` if another lane works on it.
  @discardableResult
  package func resume(_ run: String) throws(BatchError) -> DoneRanges? {
    try connection.transaction(.immediate) { () throws(BatchError) in
      ledger = try Ledger(of: run, in: connection)
      guard ledger != nil else { return }
      try StoredRun.createTable(in: connection)
      try StoredRun.claim(run, by: owner, in: connection)
      ledgerVersion = try connection.dataVersion()
    }
    return ledger?.done
  }

  /// Records that all of the run is done.
  package func finish(after elapsedSeconds: Double) throws(BatchError) {
    guard let ledger else { return }
    try connection.transaction(.immediate) { () throws(BatchError) in
      try verifyLedger()
      try StoredRun.finish(ledger.run, after: elapsedSeconds, in: connection)
    }
  }

  /// Records that the caller knows that all of the run is done.
  package func acknowledge(_ run: String) throws(BatchError) {
    // A store without a ledger gets no tables.
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_run'"
    guard try connection.value(table) != nil else { return }
    try connection.transaction(.immediate) { () throws(BatchError) in
      try Ledger.createTables(in: connection)
      try StoredRun.acknowledge(run, in: connection)
      try StoredList.remove(ofRun: run, in: connection)
    }
  }

  /// Releases the run near its end: a process that continues no longer works on it.
  package func release() throws(BatchError) {
    guard let ledger, connection.hasFile else { return }
    try connection.transaction(.immediate) { () throws(BatchError) in
      try StoredRun.release(ledger.run, by: owner, in: connection)
    }
    self.ledger = nil
  }

  /// This lane's run.
  var run: String? { ledger?.run }

  /// Verifies, in a transaction, that the run still belongs to this lane and its ledger is
  /// unchanged.
  ///
  /// This reveals another process on the same run or a restored backup. If no other connection has
  /// committed, there is nothing to check.
  private func verifyLedger() throws(BatchError) {
    try connection.refuseIfMoved()
    guard let ledger else { return }
    let version = try connection.dataVersion()
    guard version != ledgerVersion else { return }
    let stored = try Ledger(of: ledger.run, in: connection)
    if let stored, try !StoredRun.isOwned(ledger.run, by: owner, in: connection),
      stored.done.count >= ledger.done.count
    {
      throw BatchError(
        .alreadyRunning,
        "another process has taken over run \(ledger.run)",
        at: connection.path,
        remedy: "let it continue; this process has lost nothing and done nothing twice"
      )
    }
    guard stored?.done == ledger.done else {
      throw BatchError(
        .storeChanged,
        "the database is no longer as run \(ledger.run) left it: a backup was restored, or its tables"
          + " were changed",
        at: connection.path,
        advice: stored == nil
          ? "it no longer knows the run: restore the right one, or \(.beginAnew)"
          : "run again to resume from what the database has"
      )
    }
    ledgerVersion = version
  }

  /// Verifies that the run is as this lane left it, after others had time to change the store.
  ///
  /// - Throws: `BatchError` of code `storeChanged` or `alreadyRunning`; nothing if the file is
  ///   gone, since a hook may have moved it.
  package func verifyStore() throws(BatchError) {
    guard ledger != nil, connection.hasFile else { return }
    try connection.transaction(.deferred) { () throws(BatchError) in try verifyLedger() }
  }

  /// Makes the coming chunks retry failed identifiers, by index in their list.
  ///
  /// In the chunk's transaction, those that succeed leave the list, and those that fail again count
  /// one more attempt.
  ///
  /// - Returns: All failed identifiers of the run.
  /// - Throws: `BatchError` of code `damagedFile` if the store's tables contradict each other.
  /// - Precondition: ``resume(_:)`` has found the run.
  package func retryFailures() throws(BatchError) -> RetriedIdentifiers {
    guard let entered = ledger else { preconditionFailure("a retry without a ledger") }
    let failed = try Ledger.failed(ofRun: entered.run, in: connection)
    guard failed.count == entered.done.outcomes.failed,
      let retried = RetriedIdentifiers(failed, of: entered.done)
    else { throw Ledger.damaged(entered.run) }
    ledger?.retried = retried
    return retried
  }

  // MARK: Chunks

  /// Has a chunk written and entered in the ledger on its turn, in its own or a shared transaction.
  ///
  /// - Parameters:
  ///   - positions: The positions of the chunk.
  ///   - onFailure: What happens when identifiers of the run fail.
  ///   - isAlone: Whether the chunk needs its own transaction.
  ///   - write: Writes it, inside that transaction; may be called again after a rollback.
  ///   - whenCommitted: Called once the transaction is committed.
  /// - Returns: The result of the chunk.
  /// - Throws: Errors of `write` or SQLite; then nothing of the chunk is done.
  package func commit(
    _ positions: Range<Int>,
    onFailure: FailurePolicy,
    isAlone: Bool = false,
    _ write: @escaping (_ onFailure: FailurePolicy) throws(BatchError) -> ChunkResult,
    whenCommitted: @escaping () -> Void = {}
  ) async throws(BatchError) -> Commit {
    try await withCheckedContinuation { continuation in
      waiting.append(
        WaitingChunk(
          positions: positions,
          onFailure: onFailure,
          isAlone: isAlone,
          write: write,
          whenCommitted: whenCommitted,
          continuation: continuation
        )
      )
      // Runs after the calls that have arrived meanwhile, and includes their chunks.
      if !isCommitting {
        isCommitting = true
        Task { await commitAllWaiting() }
      }
    }.get()
  }

  private func commitAllWaiting() async {
    while !waiting.isEmpty {
      var chunks = waiting[...]
      waiting.removeAll()
      while !chunks.isEmpty {
        await waitForCheckpointIfTooLong()
        chunks = chunks.dropFirst(commitFirst(of: chunks))
      }
    }
    isCommitting = false
  }

  /// Commits the first of some chunks, and the next ones that fit in the same transaction.
  ///
  /// - Returns: How many of them were answered.
  private func commitFirst(of chunks: ArraySlice<WaitingChunk>) -> Int {
    var isWriting = false
    do throws(BatchError) {
      let answers = try commitInOneTransaction(chunks, &isWriting)
      for (chunk, answer) in zip(chunks, answers) {
        chunk.continuation.resume(returning: answer)
      }
      return answers.count
    } catch {
      if chunks.count > 1, isWriting || error.isAboutRows {
        // One of them fails, which must not affect the others.
        for chunk in chunks.indices { _ = commitFirst(of: chunks[chunk...chunk]) }
      } else {
        for chunk in chunks { chunk.continuation.resume(returning: .failure(error)) }
      }
      return chunks.count
    }
  }

  /// Writes and commits one or more chunks in one transaction.
  ///
  /// - Parameters:
  ///   - chunks: The chunks; those that do not fit remain.
  ///   - isWriting: Whether an error belongs to a chunk instead of the transaction.
  /// - Returns: The result of each committed chunk, or an error if its rows have changed; nothing
  ///   was done of the others.
  /// - Throws: An error after which nothing was done.
  private func commitInOneTransaction(
    _ chunks: ArraySlice<WaitingChunk>,
    _ isWriting: inout Bool
  ) throws(BatchError) -> [Result<Commit, BatchError>] {
    try checkpoints.throwFailure()
    var entered = ledger
    var group = GroupCommit(target: configuration.courtesyTarget)
    var written: [(result: Result<ChunkResult, BatchError>, elapsed: Duration)] = []
    let clock = ContinuousClock()
    var locked = clock.now
    try connection.transaction(.immediate) { () throws(BatchError) in
      // The wait for another writer is not a cost of these chunks.
      locked = clock.now
      try verifyLedger()
      try expected?.verify(in: connection)
      for chunk in chunks where written.isEmpty || group.hasRoom {
        if chunk.isAlone, !written.isEmpty { break }
        isWriting = true
        let result: Result<ChunkResult, BatchError>
        do throws(BatchError) {
          result = .success(try writeAndEnter(chunk, in: &entered))
        } catch {
          // Nothing of that chunk was done, and the others can continue.
          guard error.code == .rowsChanged else { throw error }
          result = .failure(error)
        }
        isWriting = false
        written.append((result, locked.duration(to: clock.now)))
        group.add(endingAt: written[written.count - 1].elapsed)
        if chunk.isAlone { break }
      }
    }
    let duration = locked.duration(to: clock.now)
    ledger = entered
    hasWritten = true
    for (chunk, written) in zip(chunks, written) {
      if case .success = written.result { chunk.whenCommitted() }
    }
    let rows = chunks.prefix(written.count).reduce(0) { $0 + $1.positions.count }
    let pages = connection.takeWrittenPages()
    keepJournals(ofPages: pages, rows: rows)
    noteScatter(ofPages: pages, rows: rows)
    checkpointIfLong()
    makeWay(after: duration)
    // Each has its own time, and its share of the commit.
    let shared = (duration - (written.last?.elapsed ?? .zero)) / max(written.count, 1)
    var end = Duration.zero
    return written.map { written in
      defer { end = written.elapsed }
      return written.result.map { result in
        Commit(
          outcomes: result.outcomes,
          passedOver: result.passedOver,
          duration: written.elapsed - end + shared,
          logBytes: logBytes
        )
      }
    }
  }

  /// The maximum bytes that a row may write for its statement journal to stay in memory.
  private static let journaledRow = 32 << 10

  /// Keeps statement journals in memory unless rows are large: they are as long as the changed pages.
  private func keepJournals(ofPages written: Int, rows: Int) {
    let isSmall = written * pageSize <= Self.journaledRow * rows
    guard isSmall != keepsJournalsInMemory else { return }
    keepsJournalsInMemory = isSmall
    // If this fails, they are slower, or as long as before.
    try? connection.execute("PRAGMA temp_store = \(isSmall ? "memory" : "default")")
  }

  /// Writes a chunk and enters it in the ledger, inside a transaction.
  private func writeAndEnter(
    _ chunk: WaitingChunk,
    in entered: inout Ledger?
  ) throws(BatchError) -> ChunkResult {
    let failedBefore = entered?.done.outcomes.failed ?? 0
    // Without a ledger there is no place for failures.
    let written = try chunk.write(
      entered == nil ? .failChunk : chunk.onFailure.after(failedBefore)
    )
    try entered?.enter(written.failures, at: chunk.positions, in: connection)
    try entered?.enter(written.passedOver, at: chunk.positions, in: connection)
    entered = try entered?.entering(
      DoneRanges.Row(chunk.positions, outcomes: written.outcomes, chunks: 1),
      in: connection
    )
    return written
  }

  // MARK: Commits of others

  /// How often the lane has looked for commits of other connections: a worker notes it before
  /// reading, since a commit seen by then is part of what it reads.
  package nonisolated var lookCount: Int { looks.load(ordering: .acquiring) }

  /// Whether another connection has committed since this many looks; within a transaction, which
  /// prevents others from committing.
  ///
  /// See <https://www.sqlite.org/pragma.html#pragma_data_version>: commits of the lane do not
  /// count.
  func noteForeignCommits(since lookCount: Int) throws(BatchError) -> Bool {
    let version = try connection.dataVersion()
    let thisLook = looks.load(ordering: .relaxed) + 1
    if version != lookVersion {
      lookVersion = version
      lastForeignCommit = thisLook
    }
    looks.store(thisLook, ordering: .releasing)
    return lastForeignCommit > lookCount
  }

  // MARK: Making way

  /// Leaves the lock free for a while if others want it.
  private func makeWay(after duration: Duration) {
    guard courtesy.isWanted else { return }
    let clock = ContinuousClock()
    lookForOthers(clock.now)
    let end = clock.now + courtesy.gap(after: duration, at: clock.now)
    while clock.now < end {
      // On the lane's own thread.
      usleep(1000)
      if lookForOthers(clock.now) { return }
    }
  }

  /// - Returns: Whether another connection has committed since the last look.
  @discardableResult
  private func lookForOthers(_ now: ContinuousClock.Instant) -> Bool {
    // The chunk is committed: an error here belongs to what comes next.
    guard let version = try? connection.dataVersion() else { return false }
    defer { courtesyVersion = version }
    guard version != courtesyVersion else { return false }
    courtesy.noteForeignCommit(at: now)
    return true
  }

  /// Makes all commits durable, whatever `synchronous` is: afterwards not even a power failure
  /// undoes them.
  ///
  /// - Parameter failedCount: How many failed identifiers the caller knows; nil to return all.
  /// - Returns: What is done and durable, and all failed identifiers of the run, unless the caller
  ///   knows as many.
  /// - Throws: Errors of SQLite, or that the run no longer belongs to this lane; commits stay.
  package func makeDurable(
    failedCount: Int? = 0
  ) async throws(BatchError) -> (done: DoneRanges, failed: [FailedIdentifier]?) {
    // So that the lane is idle when the last chunk of a run is durable.
    await checkpoints.pass?.value
    try connection.transaction(.deferred) { () throws(BatchError) in
      // The transaction begins with the first read.
      _ = try connection.value("SELECT count(*) FROM sqlite_schema")
      try verifyLedger()
    }
    try connection.synchronize()
    guard let ledger else { return (DoneRanges(), []) }
    let isKnown = ledger.done.outcomes.failed == failedCount
    return (ledger.done, isKnown ? nil : try Ledger.failed(ofRun: ledger.run, in: connection))
  }

  var logBytes: Int {
    WriteAheadLog.byteCount(ofFrames: connection.logFrames, pageSize: pageSize)
  }

  /// Closes the lane's connections; it must not be called afterwards.
  package func close() async {
    await checkpoints.close()
    connection.close()
  }

  /// The peak size of the write-ahead log so far, in bytes.
  package func peakLogBytes() throws(BatchError) -> Int {
    try connection.peakLogBytes()
  }
}
