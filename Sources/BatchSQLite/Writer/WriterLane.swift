import BatchJobs
package import BatchRuns
package import BatchIdentifiers

/// The only writer to a store.
///
/// SQLite allows one writer at a time, so a run has only one.
///
/// Chunks wait in a queue. The lane writes one or more of them in a transaction, each with its row
/// in the ledger.
package actor WriterLane {
  package typealias ChunkWrite =
    @Sendable (_ lane: isolated WriterLane, _ onFailure: FailurePolicy) throws(BatchError) ->
    ChunkResult

  private let executor: ThreadExecutor
  package let connection: Connection
  private let courtesyTarget: Duration?
  var owned: OwnedRun
  let log: LogCheckpointer
  private var writeLockYield: WriteLockYield
  /// The schema that each chunk requires; nil to accept any.
  var expected: ExpectedSchema?
  package let recorder: ChangeRecorder
  private var waiting: [WaitingChunk] = []
  /// Whether ``commitAllWaiting()`` is running or scheduled.
  private var isCommitting = false
  private(set) var hasWritten = false
  package nonisolated let watch: ForeignCommitWatch
  private nonisolated let pages: WrittenPages

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Whether Litestream replicates the database and decides when the log restarts.
  package nonisolated let leavesLogToLitestream: Bool

  package nonisolated let path: String

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
      // Network file systems refuse write-ahead logging. The rollback journal then stays: slower,
      // but as safe.
      _ = try connection.useWriteAheadLog()
    }
    try connection.setSynchronous(configuration.synchronous)
    if configuration.enforcesForeignKeys { try connection.execute("PRAGMA foreign_keys = ON") }
    if !configuration.runsTriggers {
      try connection.disableTriggers()
      // No log of changes has what follows, so the jobs that read them start over.
      if try connection.hasOwnTable(ChangeLog.register, with: ["number"]) {
        try connection.execute(
          "UPDATE \(ChangeLog.register) SET number = number + 1, position = number + 2 WHERE job = ''"
        )
      }
    }
    guard case .integer(let page) = try connection.value("PRAGMA page_size") else {
      throw BatchError(.notADatabase, "the database has no page size", at: path)
    }
    pages = WrittenPages(ofBytes: Int(page))
    log = try LogCheckpointer(
      connection,
      passes: StoreConnection(label: "batch.checkpointer", path: path, options: options),
      configuration: configuration,
      pageSize: Int(page)
    )
    leavesLogToLitestream = log.leavesLogToLitestream
    // Start to watch here, so that commits before the first chunk count as writes of others.
    watch = try ForeignCommitWatch(connection)
    owned = OwnedRun(watching: watch)
    courtesyTarget = configuration.courtesyTarget
    writeLockYield = WriteLockYield(target: courtesyTarget)
    interrupter = connection.interrupter
    lockWait = connection.lockWait
    self.connection = connection
    recorder = ChangeRecorder(connection)
    self.path = path
  }

  var run: String? { owned.ledger?.run }

  /// Whether each row of the last chunks changed a page of its own, as rows of random keys do in
  /// the key's index.
  package nonisolated var changesScatteredPages: Bool { pages.areScattered }

  /// Writes a chunk when its turn comes, and enters it in the ledger, in its own or a shared
  /// transaction.
  ///
  /// `write` runs inside that transaction, and may be called again after a rollback.
  ///
  /// - Throws: Errors of `write` or SQLite; then nothing of the chunk is done.
  package func commit(
    _ positions: Range<Int>,
    onFailure: FailurePolicy,
    isAlone: Bool = false,
    _ write: @escaping ChunkWrite,
    whenCommitted: @escaping @Sendable () -> Void = {}
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
      // The task runs after the calls that arrive before it, and includes their chunks.
      if !isCommitting {
        isCommitting = true
        Task { await commitAllWaiting() }
      }
    }.get()
  }

  private static let longTransaction = Duration.milliseconds(200)

  private func commitAllWaiting() async {
    while !waiting.isEmpty {
      var chunks = waiting[...]
      waiting.removeAll()
      while !chunks.isEmpty {
        if let pass = log.overduePass {
          await pass.value
          checkpointIfLong()
        }
        let start = ContinuousClock.now
        chunks = chunks.dropFirst(commitFirst(of: chunks))
        // Otherwise, the record of what is done would wait for all these chunks.
        if start.duration(to: .now) >= Self.longTransaction { await Task.yield() }
      }
    }
    isCommitting = false
  }

  /// Commits the first of some chunks, and those after it that fit in the same transaction.
  ///
  /// - Returns: The number of chunks that got a result.
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
        // One of the chunks failed, which must not affect the others.
        for chunk in chunks.indices { _ = commitFirst(of: chunks[chunk...chunk]) }
      } else {
        for chunk in chunks { chunk.continuation.resume(returning: .failure(error)) }
      }
      return chunks.count
    }
  }

  /// Writes and commits one or more chunks in one transaction; chunks that do not fit remain.
  ///
  /// Sets `isWriting` to whether an error belongs to a chunk rather than the transaction.
  ///
  /// - Returns: The result of each committed chunk, or an error if its rows have changed. Nothing
  ///   was done for the other chunks.
  /// - Throws: An error after which nothing was done.
  private func commitInOneTransaction(
    _ chunks: ArraySlice<WaitingChunk>,
    _ isWriting: inout Bool
  ) throws(BatchError) -> [Result<Commit, BatchError>] {
    try log.throwFailure()
    var entered = owned.ledger
    var group = GroupCommit(target: courtesyTarget)
    var written: [(result: Result<ChunkResult, BatchError>, elapsed: Duration)] = []
    let clock = ContinuousClock()
    var locked = clock.now
    try connection.transaction(.immediate) { () throws(BatchError) in
      // Time spent waiting for another writer is not a cost of these chunks.
      locked = clock.now
      try owned.verify(in: connection)
      try expected?.verify(in: connection)
      for chunk in chunks where written.isEmpty || group.hasRoom {
        if chunk.isAlone, !written.isEmpty { break }
        isWriting = true
        let result: Result<ChunkResult, BatchError>
        do throws(BatchError) {
          result = .success(try writeAndEnter(chunk, in: &entered))
        } catch {
          // Nothing of this chunk was done, so the others can continue.
          guard error.code == .rowsChanged else { throw error }
          result = .failure(error)
        }
        isWriting = false
        written.append((result, locked.duration(to: clock.now)))
        group.add(endingAt: written[written.count - 1].elapsed)
        if chunk.isAlone { break }
      }
      try owned.recordTime(in: connection)
    }
    let duration = locked.duration(to: clock.now)
    owned.commit(entered)
    hasWritten = true
    for (chunk, written) in zip(chunks, written) {
      if case .success = written.result { chunk.whenCommitted() }
    }
    let rows = chunks.prefix(written.count).reduce(0) { $0 + $1.positions.count }
    pages.note(connection.takeWrittenPages(), rows: rows, by: connection)
    checkpointIfLong()
    writeLockYield.yieldWriteLock(after: duration, to: watch, in: connection)
    // Each chunk counts its own time, and its share of the commit.
    let shared = (duration - (written.last?.elapsed ?? .zero)) / max(written.count, 1)
    var end = Duration.zero
    return written.map { written in
      defer { end = written.elapsed }
      return written.result.map { result in
        Commit(
          outcomes: result.outcomes,
          passedOver: result.passedOver,
          duration: written.elapsed - end + shared,
          logBytes: log.logBytes
        )
      }
    }
  }

  private func writeAndEnter(
    _ chunk: WaitingChunk,
    in entered: inout Ledger?
  ) throws(BatchError) -> ChunkResult {
    let failedBefore = entered?.done.outcomes.failed ?? 0
    // Without a ledger, failures cannot be recorded.
    let written = try chunk.write(
      self,
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

  func checkpointIfLong() {
    log.checkpointIfLong(besideOthers: writeLockYield.othersWrite(at: .now))
  }

  /// Empties the write-ahead log, unless another connection reads from it or writes.
  ///
  /// - Returns: Its remaining length in bytes.
  package func emptyLog() async throws(BatchError) -> Int {
    await log.currentPass?.value
    try log.empty()
    return log.logBytes
  }

  /// The largest size of the write-ahead log so far, in bytes.
  package func peakLogBytes() throws(BatchError) -> Int {
    try connection.peakLogBytes()
  }

  /// Closes the lane's connections; the lane must not be used afterwards.
  package func close() async {
    await log.currentPass?.value
    await log.checkpointer.close()
    connection.close()
  }
}

extension WriterLane: ChunkWriter {
  package nonisolated func interrupt() { interrupter.interrupt() }

  package nonisolated var logRemedy: String {
    leavesLogToLitestream
      ? "Litestream holds a read lock on it and restarts it once it has copied it; see that it runs"
      : "another connection reads from it, so it cannot be emptied: look for a long"
        + " SELECT, an open transaction or a backup, as with fuser -v \(path)"
  }
}
