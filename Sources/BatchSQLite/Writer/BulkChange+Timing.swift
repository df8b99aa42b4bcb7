import BatchRuns
import BatchIdentifiers

/// The measured cost of the chunks tried.
package struct TriedChunks: Sendable {
  /// The seconds per identifier of each chunk, without commits.
  private var times: [Double] = []
  /// Whether even a single row took longer than it was tried, so that the times are lower bounds.
  private(set) var isInterrupted = false
  private var rows = 0
  private var pages = 0

  mutating func add(_ rows: Int, _ duration: Duration, pages: Int = 0) {
    times.append(duration / .seconds(1) / Double(max(rows, 1)))
    self.rows += rows
    self.pages += pages
  }

  mutating func interrupt(after limit: Duration) {
    (times, isInterrupted) = ([limit / .seconds(1)], true)
  }

  /// The seconds per identifier; this is the median, since other processes may have used the
  /// processor.
  package var secondsPerRow: Double { times.sorted()[times.count / 2] }

  /// The pages read per identifier; a change writes nearly all of them.
  package var pagesPerRow: Double { Double(pages) / Double(max(rows, 1)) }
}

extension BulkChange {
  /// Estimates how long a run takes: changes chunks as a run does, and rolls each one back.
  ///
  /// No page reaches the database or its log. Other writers wait for the lock at most `limit` for
  /// one chunk, as they would for a chunk of a run. The first chunk only warms up the caches.
  ///
  /// A chunk that takes longer is tried with fewer rows.
  ///
  /// - Returns: Nil if chunks fail or cannot be tried, for example because another connection writes.
  package func tried(
    _ chunks: [ChunkKeys],
    isRowByRow: Bool,
    enforcesForeignKeys: Bool,
    within limit: Duration,
    in store: Store
  ) -> TriedChunks? {
    var options = store.options
    guard !chunks.isEmpty, !options.isURI, !options.isReadOnly, !options.leavesNoTrace else {
      return nil
    }
    options.busyTimeout = .zero
    options.cacheSizeKiB = 65_536
    do throws(BatchError) {
      let connection = try Connection(path: store.path, options: options)
      defer { connection.close() }
      // Pages must not leave the cache before the rollback, and no journal file may be written.
      try connection.execute("PRAGMA cache_spill = OFF")
      try connection.execute("PRAGMA temp_store = memory")
      if try connection.journalMode() != "wal" {
        _ = try connection.value("PRAGMA journal_mode = memory")
      }
      if enforcesForeignKeys { try connection.execute("PRAGMA foreign_keys = ON") }
      var tried = TriedChunks()
      var size = Int.max
      var rest = chunks[...]
      while let chunk = rest.first {
        let part = chunk.identifierCount > size ? chunk.part(0..<size) : chunk
        let keys = isRowByRow ? part.singly : part
        try connection.execute(Connection.TransactionKind.immediate.rawValue)
        defer { if !connection.isAutocommit { try? connection.execute("ROLLBACK") } }
        if let creation = archiveCreation { try connection.execute(creation) }
        _ = connection.takeReadPages()
        let clock = ContinuousClock()
        let start = clock.now
        let written = try connection.within(limit) { () throws(BatchError) in
          try write(to: located(keys, in: connection), onFailure: .failChunk, in: connection)
        }
        let end = clock.now
        guard written != nil else {
          guard keys.identifierCount > 1 else {
            tried.interrupt(after: limit)
            return tried
          }
          size = max(1, keys.identifierCount / 10)
          continue
        }
        rest.removeFirst()
        if rest.count == chunks.count - 1, chunks.count > 1 { continue }
        tried.add(keys.identifierCount, start.duration(to: end), pages: connection.takeReadPages())
      }
      return tried
    } catch {
      return nil
    }
  }
}
