import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// A sequence of records, and how each of them fills a row.
struct RecordSource: Sendable {
  struct Reader {
    /// Reads the next record and fills a row with it, or notes why it cannot; returns false at the end.
    let next: (InsertedRows, isolated RecordFeed) async throws -> Bool
  }

  let mapping: ModelMapping
  let resolution: BatchInsertion.Resolution
  let begin: @Sendable () -> Reader
}

/// The records of a chunk, as rows for the lane.
final class RecordChunk: @unchecked Sendable {
  // Sendable, since only one at a time has it: the feed fills it, and does not touch it again; the
  // lane, of which there is one, has it while it writes.
  let rows: InsertedRows
  /// The indexes of the records in the sequence.
  fileprivate(set) var indexes: [Int] = []
  /// A hash of all records up to the last one.
  fileprivate(set) var readHash: UInt64

  fileprivate init(_ rows: InsertedRows, _ readHash: UInt64) {
    self.rows = rows
    self.readHash = readHash
  }
}

/// Reads a sequence of records in its order: the worker of a run that loads it.
///
/// Backpressure: it reads only while a chunk is filled, and a chunk ends after some megabytes. It
/// keeps chunks until they are committed, since a sequence cannot be read again.
actor RecordFeed: ChunkWorker {
  private let source: RecordSource
  private let entity: ModelEntity
  private let container: ModelContainer
  /// The indexes of the records to load; nil for each at its own position.
  private let wanted: [Int]?
  /// The records that the run has read before.
  private let readBefore: RunProgress.ReadRecords?
  private var reader: RecordSource.Reader?
  private var skipped: InsertedRows
  /// How many records were read, and their hash.
  private var count = 0
  private var hash: UInt64 = 0
  private var hasEnded = false
  private var failure: BatchError?
  private var uncommitted: [Int: RecordChunk] = [:]
  private let reading = Lock<(isInterrupted: Bool, task: Task<RecordChunk, any Error>?)>(
    (false, nil)
  )

  /// A chunk ends with the first record after this time, so that slow ones need not wait for it.
  private static let patience = Duration.seconds(1)

  init(
    _ source: RecordSource,
    into entity: ModelEntity,
    of container: ModelContainer,
    only wanted: [Int]?,
    after readBefore: RunProgress.ReadRecords?
  ) {
    self.source = source
    self.entity = entity
    self.container = container
    self.wanted = wanted
    self.readBefore = readBefore
    skipped = InsertedRows(of: source.mapping, entity, in: container)
  }

  /// The records of some positions, as far as they are held at once; none if the sequence ends before.
  func chunk(at positions: Range<Int>) async throws(BatchError) -> RecordChunk {
    if let chunk = uncommitted[positions.lowerBound] { return chunk }
    // Not cancelled with the run, since a cancelled sequence ends as if it had no more records. An
    // interruption is known as one.
    let task = Task { try await read(positions) }
    reading.withLock { reading in
      reading.task = task
      if reading.isInterrupted { task.cancel() }
    }
    do {
      let chunk = try await task.value
      uncommitted[positions.lowerBound] = chunk
      return chunk
    } catch {
      throw error as? BatchError ?? BatchError(thrownByClosure: error)
    }
  }

  func committed(_ positions: Range<Int>) { uncommitted[positions.lowerBound] = nil }

  private func read(_ positions: Range<Int>) async throws(BatchError) -> RecordChunk {
    let rows = InsertedRows(of: source.mapping, entity, in: container)
    let chunk = RecordChunk(rows, hash)
    var first: ContinuousClock.Instant?
    while chunk.indexes.count < positions.count, rows.chunk.heldBytes < ChunkBytes.chunkLimit {
      let position = positions.lowerBound + chunk.indexes.count
      let isWanted = count == wanted?[position] ?? position
      guard try await readNext(into: isWanted ? rows : skipped) else { break }
      guard isWanted else {
        skipped.removeAll()
        continue
      }
      chunk.indexes.append(count - 1)
      chunk.readHash = hash
      let now = ContinuousClock.now
      if RunStop.isOver(after: .zero) || now - (first ?? now) > Self.patience { break }
      first = first ?? now
    }
    return chunk
  }

  /// Reads a record; returns false at the end.
  private func readNext(into rows: InsertedRows) async throws(BatchError) -> Bool {
    if let failure { throw failure }
    if hasEnded { return false }
    let reader = reader ?? source.begin()
    self.reader = reader
    var isRead = false
    var thrown: BatchError?
    do {
      isRead = try await reader.next(rows, self)
    } catch {
      thrown =
        error as? BatchError
        ?? BatchError(.handlerFailed, "the sequence threw \(error)", underlying: error)
    }
    if Task.isCancelled { throw RunStop.interruption(of: "the sequence of records") }
    if isRead {
      count += 1
      hash = rows.chunk.hashOfLast(after: hash)
      if let readBefore, count == readBefore.count, hash != readBefore.hash {
        thrown = changed("its first \(count.grouped) records are not those that the run has read")
      }
    } else if thrown == nil {
      hasEnded = true
      let last = max(readBefore?.count ?? 0, (wanted?.last ?? -1) + 1)
      if count < last {
        thrown = changed("it has \(count.grouped) records, and the run has read \(last.grouped)")
      }
    }
    failure = thrown
    if let thrown { throw thrown }
    return isRead
  }

  private func changed(_ how: String) -> BatchError {
    BatchError(
      .inputChanged,
      "the sequence is not the one that the run began with: \(how)",
      at: entity.entity.name,
      remedy:
        "give the same records in the same order, or set options.fresh to load these from the first"
    )
  }

  nonisolated func interrupt() {
    reading.withLock { reading in
      reading.isInterrupted = true
      reading.task?.cancel()
    }
  }

  func close() { reader = nil }
}
