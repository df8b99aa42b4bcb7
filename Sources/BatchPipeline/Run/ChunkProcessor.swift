import BatchIdentifiers
import BatchStore

/// What a run does with a chunk: prepared by a worker, then committed by the one that writes.
protocol ChunkProcessor: Sendable {
  /// What crosses from the worker to the writer.
  associatedtype Prepared: Sendable

  /// Whether chunks must be committed in the order of their positions.
  var inOrder: Bool { get }

  /// Reads and computes what the chunk needs, in a background context.
  func prepare(
    _ positions: Range<Int>,
    in context: BackgroundContext
  ) async throws(BatchError) -> Prepared

  /// Makes the chunk's effect lasting, all of it or none.
  func commit(
    _ prepared: Prepared,
    at positions: Range<Int>
  ) async throws(BatchError) -> Outcomes

  /// Waits until everything committed is on the disk, and completes `progress`; `done` is what this
  /// process has seen committed.
  func synchronize(_ progress: inout RunProgress, done: DoneRanges) async throws(BatchError)

  /// Puts the result of a completed run into place, and completes `progress`.
  func finish(_ progress: inout RunProgress) async throws(BatchError)
}

/// Updates and deletes: the identifiers go straight to the writer lane.
struct ChangeProcessor: ChunkProcessor {
  let list: IdentifierList
  let change: BulkChange
  let lane: WriterLane
  let ledger: LedgerPlace

  var inOrder: Bool { false }

  func prepare(
    _ positions: Range<Int>,
    in context: BackgroundContext
  ) async throws(BatchError) -> ChunkKeys {
    try await context.compute { () throws(BatchError) in
      try ChunkKeys(list, positions, key: change.key)
    }
  }

  func commit(
    _ keys: ChunkKeys,
    at positions: Range<Int>
  ) async throws(BatchError) -> Outcomes {
    try await lane.apply(change, to: keys, at: positions)
  }

  func synchronize(_ progress: inout RunProgress, done: DoneRanges) async throws(BatchError) {
    let durable = try await lane.makeDurable()
    progress.done = ledger == .store ? durable : done
    progress.peakWALBytes = max(progress.peakWALBytes, try await lane.peakLogBytes())
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {}
}

/// Exports: workers read rows and write lines, which are appended in the order of the list.
struct ExportProcessor: ChunkProcessor {
  let list: IdentifierList
  let key: EntityKey
  let export: RowExport
  let writer: ExportWriter

  var inOrder: Bool { true }

  /// The lines of a chunk and what became of its identifiers.
  struct Lines: Sendable {
    let bytes: [UInt8]
    let outcomes: Outcomes
  }

  func prepare(
    _ positions: Range<Int>,
    in context: BackgroundContext
  ) async throws(BatchError) -> Lines {
    try await context.perform { connection throws(BatchError) in
      let keys = try ChunkKeys(list, positions, key: key)
      let (bytes, outcomes) = try export.lines(for: keys, in: connection)
      return Lines(bytes: bytes, outcomes: outcomes)
    }
  }

  func commit(
    _ lines: Lines,
    at positions: Range<Int>
  ) async throws(BatchError) -> Outcomes {
    try await writer.append(lines.bytes, at: positions, lines.outcomes)
    return lines.outcomes
  }

  func synchronize(_ progress: inout RunProgress, done: DoneRanges) async throws(BatchError) {
    // The writer may be a chunk ahead of `done`; what is recorded must be of one moment.
    (progress.done, progress.outputBytes, progress.outputIdentity) = try await writer.synchronize()
  }

  func finish(_ progress: inout RunProgress) async throws(BatchError) {
    try await writer.publish()
  }
}

/// The one place that writes an export's file, on a thread of its own.
actor ExportWriter {
  private let executor = DispatchSerialExecutor(label: "batch.output")
  private let file: ExportFile
  private let overwrites: Bool
  /// The positions whose lines are in the file: these and no others.
  private var done: DoneRanges

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Takes over a file that holds the lines of the positions `done`, and which when complete may
  /// take the place of another if it `overwrites`.
  init(_ file: sending ExportFile, done: DoneRanges, overwrites: Bool) {
    self.file = file
    self.done = done
    self.overwrites = overwrites
  }

  func append(
    _ lines: [UInt8],
    at positions: Range<Int>,
    _ outcomes: Outcomes
  ) throws(BatchError) {
    try file.append(lines)
    done.insert(DoneRanges.Row(positions, outcomes: outcomes, chunks: 1))
  }

  /// Waits until the file is on the disk.
  ///
  /// - Returns: The positions whose lines it holds, its length, and which file it is.
  func synchronize() throws(BatchError) -> (DoneRanges, Int, FileIdentity) {
    try file.synchronize()
    return (done, file.count, try file.identity())
  }

  /// Gives the complete file its name.
  func publish() throws(BatchError) {
    try file.publish(replacing: overwrites)
  }
}
