package import BatchEngine
package import BatchIdentifiers
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// How a lane keeps the database.
package struct WriterConfiguration: Sendable {
  /// How much a commit waits for the disk.
  package var synchronous = Synchronous.normal
  /// Whether the database is switched to write-ahead logging.
  package var usesWriteAheadLog = true
  /// Whether foreign keys are enforced: SQLite does not by itself.
  package var enforcesForeignKeys = false
  /// Whether triggers run.
  package var runsTriggers = true
  /// How long other writers may wait for a chunk; nil to ignore them.
  package var courtesyTarget: Duration?
  /// The size of the write-ahead log in bytes past which it is checkpointed.
  package var checkpointBytes = 8 << 20

  /// The defaults.
  package init() {}

  /// Has the log checkpointed long before it is as long as would hold a run.
  package mutating func limitCheckpoints(to maximumWAL: Int64) {
    checkpointBytes = min(checkpointBytes, Int(clamping: maximumWAL / 2))
  }
}

/// The one place that writes to a store: SQLite has one writer, so the run has one too.
///
/// Each chunk is one transaction that holds the change and its row in the ledger: what is called `commit`
/// here ends one, and what is called `write`, here and below, is done inside it.
package actor WriterLane {
  private let executor: ThreadExecutor
  package let connection: Connection
  let configuration: WriterConfiguration
  private let pageSize: Int
  /// The checkpoints of the log.
  var checkpoints: LogCheckpoints
  private(set) var courtesy: Courtesy
  /// What SQLite gave as the version of the database when the lane last made way.
  private var courtesyVersion: Int64
  /// Whether what undoes a statement that fails half-way is kept in memory; SQLite would put it into a
  /// file that is made and removed for each chunk.
  private var keepsJournalsInMemory = false
  private var ledger: Ledger?
  /// What SQLite gave as the version of the database when the ledger was as this lane knows it.
  private var ledgerVersion: Int64 = 0
  private let owner = RunOwner()
  /// What keeps the changes of chunks for undo, of a run that asks for it.
  package let recorder: ChangeRecorder
  /// Chunks that have come and are not written yet.
  private var waiting: [WaitingChunk] = []
  /// Whether ``commitAllWaiting()`` goes on, or will.
  private var isCommitting = false
  /// What SQLite gave as the version of the database at the last look.
  private var lookVersion: Int64
  /// The look at which a commit of another connection was seen last.
  private var lastForeignCommit = 0
  private nonisolated let looks = Atomic(0)

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Whether Litestream replicates the database, which then says when the log is started anew.
  ///
  /// It copies the log, and reads from it so that nobody starts it anew before that
  /// (<https://litestream.io/how-it-works/>).
  package nonisolated let leavesLogToLitestream: Bool

  /// The path of the store, as it was opened.
  nonisolated let path: String

  /// Stops the statement that the lane is running, from any thread.
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
      // Where it is refused, on a network file system, the old journal serves: slower, as safe.
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
    leavesLogToLitestream = try connection.isReplicatedByLitestream()
    // Whoever commits before the first chunk is already seen to write.
    lookVersion = try connection.dataVersion()
    courtesyVersion = lookVersion
    self.configuration = configuration
    self.connection = connection
    recorder = ChangeRecorder(connection)
    self.path = path
  }

  // MARK: The store's own tables

  /// Gives the store the UUID of `proposal` if it has none, and makes the ledger's tables.
  package func prepareStore(
    _ proposal: StoreIdentity = .made()
  ) throws(BatchError) -> StoreIdentity {
    try connection.transaction(.immediate) { () throws(BatchError) in
      try Ledger.createTables(in: connection)
      return try StoreIdentity.establish(proposal, in: connection)
    }
  }

  /// Enters a new run in the ledger, which from here on is this lane's.
  ///
  /// - Parameters:
  ///   - run: The run.
  ///   - list: Its identifiers, with the metadata of its checkpoint, if the store is to keep them too.
  /// - Throws: `BatchError` of code `alreadyRunning` or `unfinishedRun` if another run of the job is in
  ///   the way, or what SQLite says; nothing is entered then.
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

  /// Removes the finished runs of a job, and some others, from the ledger.
  ///
  /// - Parameters:
  ///   - job: The job's name.
  ///   - runs: Runs that are removed whether they are finished or not.
  ///   - kept: One that stays in any case.
  ///   - oldestEnd: Since when identifiers of work are remembered; nil forever.
  /// - Returns: How many were removed.
  /// - Throws: What SQLite says.
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

  /// Takes up the ledger of a run, which from here on is this lane's.
  ///
  /// - Returns: What is done, or nil if the store knows no such run.
  /// - Throws: `BatchError` of code `alreadyRunning` if another lane is at work on it.
  @discardableResult
  package func resume(_ run: String) throws(BatchError) -> DoneRanges? {
    try connection.transaction(.immediate) { () throws(BatchError) in
      ledger = try Ledger(of: run, in: connection)
      guard ledger != nil else { return }
      try StoredRun.createTable(in: connection)
      try StoredUndo.prepareToResume(in: connection)
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

  /// Records that whoever asked for a run knows that all of it is done.
  package func acknowledge(_ run: String) throws(BatchError) {
    // A store that keeps no ledger gets no tables.
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_batch_run'"
    guard try connection.value(table) != nil else { return }
    try connection.transaction(.immediate) { () throws(BatchError) in
      try Ledger.createTables(in: connection)
      try StoredRun.acknowledge(run, in: connection)
      try StoredList.remove(ofRun: run, in: connection)
    }
  }

  /// Lets go of the run, whose end is near: a process that goes on is not at work on it any more.
  package func release() throws(BatchError) {
    guard let ledger, connection.hasFile else { return }
    try connection.transaction(.immediate) { () throws(BatchError) in
      try StoredRun.release(ledger.run, by: owner, in: connection)
    }
    self.ledger = nil
  }

  /// The run that is this lane's.
  var run: String? { ledger?.run }

  /// Sees, in a transaction, that the run is still this lane's and its ledger as this lane left it.
  ///
  /// Whatever else may have happened to the database, by another process on the same run or by a backup
  /// that was restored, shows there. Where nobody else has committed there is nothing to look at.
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
        remedy: "let it go on; this process has lost nothing and done nothing twice"
      )
    }
    guard stored?.done == ledger.done else {
      throw BatchError(
        .storeChanged,
        "the database is no longer as run \(ledger.run) left it: a backup was restored, or its tables"
          + " were changed",
        at: connection.path,
        advice: stored == nil
          ? "it no longer knows the run: bring the right one back, or \(.beginAnew)"
          : "run again to go on from what the database has"
      )
    }
    ledgerVersion = version
  }

  /// Sees that the run is still as this lane has left it, after others had time to change the store.
  ///
  /// - Throws: `BatchError` of code `storeChanged` or `alreadyRunning`; nothing if the file is gone, which
  ///   a hook may have moved to its place.
  package func verifyStore() throws(BatchError) {
    guard ledger != nil, connection.hasFile else { return }
    try connection.transaction(.deferred) { () throws(BatchError) in try verifyLedger() }
  }

  /// Makes the chunks to come be of places in the list of identifiers that failed.
  ///
  /// Those that succeed leave it, and those that fail again stay and count one attempt more, in the
  /// transaction of the chunk.
  ///
  /// - Returns: All of the run that failed.
  /// - Throws: `BatchError` of code `damagedFile` if the store's tables contradict one another.
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

  /// Changes the rows of one chunk and enters it in the ledger, both or neither.
  ///
  /// Identifiers of the run that fail and are passed over are entered with the chunk.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - keys: The keys of the chunk.
  ///   - ahead: What a worker has read of the rows; it is used if nobody else has committed since.
  ///   - positions: The positions of the chunk.
  ///   - onFailure: What becomes of identifiers of the whole run that fail.
  /// - Returns: What came of the chunk.
  /// - Throws: Whatever SQLite says, of this chunk or of the checkpoint after the one before; the
  ///   store is then as it was before.
  package func commitChange(
    _ change: BulkChange,
    to keys: ChunkKeys,
    readAhead ahead: RowsAhead? = nil,
    at positions: Range<Int>,
    onFailure: FailurePolicy = .failChunk
  ) async throws(BatchError) -> Commit {
    try await commitInTurn(positions, onFailure: onFailure) { [self] onFailure throws(BatchError) in
      let before = try ahead.flatMap { ahead throws(BatchError) in
        try noteForeignCommits(since: ahead.lookCount) ? nil : ahead.rows
      }
      return try change.write(
        to: keys,
        at: positions.lowerBound,
        before: before,
        onFailure: onFailure,
        in: connection
      )
    }
  }

  /// Has a chunk written and entered in the ledger when its turn comes, in a transaction of its own or with
  /// others.
  ///
  /// - Parameters:
  ///   - positions: The positions of the chunk.
  ///   - onFailure: What becomes of identifiers of the whole run that fail.
  ///   - isAlone: Whether the chunk shares its transaction with no other.
  ///   - write: Writes it, inside that transaction; may be called again if it is rolled back.
  ///   - whenCommitted: Called once the transaction is committed.
  /// - Returns: What came of the chunk.
  /// - Throws: What `write` throws, or whatever SQLite says; nothing of the chunk is done then.
  package func commitInTurn(
    _ positions: Range<Int>,
    onFailure: FailurePolicy,
    isAlone: Bool = false,
    _ write: @escaping (_ onFailure: FailurePolicy) throws(BatchError) -> WaitingChunk.Written,
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
      // Comes to run after the calls that have arrived meanwhile, and takes their chunks along.
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

  /// Commits the first of some chunks, and those after it that fit into the same transaction.
  ///
  /// - Returns: How many of them have been answered.
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
        // One of them cannot be done, and the others are not to suffer for it.
        for chunk in chunks.indices { _ = commitFirst(of: chunks[chunk...chunk]) }
      } else {
        for chunk in chunks { chunk.continuation.resume(returning: .failure(error)) }
      }
      return chunks.count
    }
  }

  /// Writes one chunk or more and commits them, in one transaction.
  ///
  /// - Parameters:
  ///   - chunks: The chunks, of which those are left that do not fit.
  ///   - isWriting: Whether an error is that of a chunk, and not of the transaction.
  /// - Returns: What came of each that was committed, or an error if its rows have changed; of the
  ///   others nothing was done.
  /// - Throws: An error after which nothing was done of any.
  private func commitInOneTransaction(
    _ chunks: ArraySlice<WaitingChunk>,
    _ isWriting: inout Bool
  ) throws(BatchError) -> [Result<Commit, BatchError>] {
    try checkpoints.throwFailure()
    var entered = ledger
    var group = GroupCommit(target: configuration.courtesyTarget)
    var written: [(result: Result<WaitingChunk.Written, BatchError>, elapsed: Duration)] = []
    let clock = ContinuousClock()
    var locked = clock.now
    try connection.transaction(.immediate) { () throws(BatchError) in
      // Waiting for another writer to finish is no cost of these chunks.
      locked = clock.now
      try verifyLedger()
      for chunk in chunks where written.isEmpty || group.hasRoom {
        if chunk.isAlone, !written.isEmpty { break }
        isWriting = true
        let result: Result<WaitingChunk.Written, BatchError>
        do throws(BatchError) {
          result = .success(try writeAndEnter(chunk, in: &entered))
        } catch {
          // Of that one nothing was done, and the others can go on.
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
    for (chunk, written) in zip(chunks, written) {
      if case .success = written.result { chunk.whenCommitted() }
    }
    let rows = chunks.prefix(written.count).reduce(0) { $0 + $1.positions.count }
    keepJournals(ofPages: connection.takeWrittenPages(), rows: rows)
    checkpointIfLong()
    makeWay(after: duration)
    // Each has had its own time, and its share of the commit.
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

  /// The most bytes that a row writes for which what undoes its statement is kept in memory.
  private static let journaledRow = 32 << 10

  /// Keeps in memory what undoes the statements to come, unless rows are large: it is as long as the
  /// pages that a chunk changes, and rows are about as large as those before.
  private func keepJournals(ofPages written: Int, rows: Int) {
    let isSmall = written * pageSize <= Self.journaledRow * rows
    guard isSmall != keepsJournalsInMemory else { return }
    keepsJournalsInMemory = isSmall
    // Without it they are slower, or as long as they were.
    try? connection.execute("PRAGMA temp_store = \(isSmall ? "memory" : "default")")
  }

  /// Writes a chunk and enters it in the ledger, inside a transaction.
  private func writeAndEnter(
    _ chunk: WaitingChunk,
    in entered: inout Ledger?
  ) throws(BatchError) -> WaitingChunk.Written {
    let failedBefore = entered?.done.outcomes.failed ?? 0
    // Without a ledger there is nowhere to keep failures.
    let written = try chunk.write(
      entered == nil ? .failChunk : chunk.onFailure.after(failedBefore)
    )
    try entered?.enter(written.failures, in: connection)
    try entered?.enter(written.passedOver, at: chunk.positions, in: connection)
    entered = try entered?.entering(
      DoneRanges.Row(chunk.positions, outcomes: written.outcomes, chunks: 1),
      in: connection
    )
    return written
  }

  // MARK: Commits of others

  /// How often the lane has looked for commits of other connections: what a worker notes before it
  /// reads, since a commit that was seen by then is part of what it reads.
  package nonisolated var lookCount: Int { looks.load(ordering: .acquiring) }

  /// Whether another connection has committed since the lane had looked so often; within a
  /// transaction, which keeps others from committing.
  ///
  /// See <https://www.sqlite.org/pragma.html#pragma_data_version>: commits of the lane do not count.
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

  /// Leaves the lock alone for a while if others want it.
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
    // The chunk is committed: an error here is that of whatever comes next.
    guard let version = try? connection.dataVersion() else { return false }
    defer { courtesyVersion = version }
    guard version != courtesyVersion else { return false }
    courtesy.noteForeignCommit(at: now)
    return true
  }

  /// Makes all that was committed durable, whatever `synchronous` is: afterwards not even a power
  /// failure undoes it.
  ///
  /// - Parameter failedCount: How many failed identifiers the caller knows; nil to be told all.
  /// - Returns: What is done and durable, and all identifiers of the run that failed, unless they
  ///   are as many as the caller knows.
  /// - Throws: Whatever SQLite says, or that the run is no longer this lane's; what was committed stays
  ///   committed.
  package func makeDurable(
    failedCount: Int? = 0
  ) async throws(BatchError) -> (done: DoneRanges, failed: [FailedIdentifier]?) {
    // So that nothing of the lane is at work when the last chunk of a run is durable.
    await checkpoints.pass?.value
    try connection.transaction(.deferred) { () throws(BatchError) in
      // The transaction begins with what is read first.
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

  /// Closes the lane's connections, after which it must not be called any more.
  package func close() async {
    await checkpoints.close()
    connection.close()
  }

  /// The greatest size of the write-ahead log so far, in bytes.
  package func peakLogBytes() throws(BatchError) -> Int {
    try connection.peakLogBytes()
  }
}
