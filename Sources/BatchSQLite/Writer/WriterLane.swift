package import BatchRuns
package import BatchIdentifiers

/// The only writer to a store: SQLite has one writer, so a run has one too.
///
/// Chunks wait in a queue; the lane writes one or more of them in a transaction, each with its row
/// in the ledger. What it does beside that, its parts do.
package actor WriterLane {
  /// Writes a chunk inside a transaction of the lane, with a failure policy.
  package typealias ChunkWrite =
    @Sendable (_ lane: isolated WriterLane, _ onFailure: FailurePolicy) throws(BatchError) ->
    ChunkResult

  private let executor: ThreadExecutor
  package let connection: Connection
  private let courtesyTarget: Duration?
  /// The run that the lane works on.
  var owned: OwnedRun
  /// Keeps the log short.
  let log: LogCheckpointer
  private var writeLockYield: WriteLockYield
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
  /// Notices commits of other connections.
  package nonisolated let watch: ForeignCommitWatch
  private nonisolated let pages: WrittenPages

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Whether Litestream replicates the database and decides when the log restarts.
  package nonisolated let leavesLogToLitestream: Bool

  package nonisolated let path: String

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
    pages = WrittenPages(ofBytes: Int(page))
    log = try LogCheckpointer(
      connection,
      passes: StoreConnection(label: "batch.checkpointer", path: path, options: options),
      configuration: configuration,
      pageSize: Int(page)
    )
    leavesLogToLitestream = log.leavesLogToLitestream
    // From here on, so that commits before the first chunk count as others' writes.
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

  /// This lane's run.
  var run: String? { owned.ledger?.run }

  /// Whether the rows of the last chunks changed pages of their own, as those of random keys do in
  /// the index of the key.
  package nonisolated var changesScatteredPages: Bool { pages.areScattered }

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
        if let pass = log.overduePass {
          await pass.value
          checkpointIfLong()
        }
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
    try log.throwFailure()
    var entered = owned.ledger
    var group = GroupCommit(target: courtesyTarget)
    var written: [(result: Result<ChunkResult, BatchError>, elapsed: Duration)] = []
    let clock = ContinuousClock()
    var locked = clock.now
    try connection.transaction(.immediate) { () throws(BatchError) in
      // The wait for another writer is not a cost of these chunks.
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
          // Nothing of that chunk was done, and the others can continue.
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
          logBytes: log.logBytes
        )
      }
    }
  }

  /// Writes a chunk and enters it in the ledger, inside a transaction.
  private func writeAndEnter(
    _ chunk: WaitingChunk,
    in entered: inout Ledger?
  ) throws(BatchError) -> ChunkResult {
    let failedBefore = entered?.done.outcomes.failed ?? 0
    // Without a ledger there is no place for failures.
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

  /// Checkpoints the log once it is long.
  private func checkpointIfLong() {
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

  /// The peak size of the write-ahead log so far, in bytes.
  package func peakLogBytes() throws(BatchError) -> Int {
    try connection.peakLogBytes()
  }

  /// Closes the lane's connections; it must not be called afterwards.
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
