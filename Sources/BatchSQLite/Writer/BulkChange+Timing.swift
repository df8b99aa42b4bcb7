import BatchRuns
import BatchIdentifiers

/// What chunks took that were tried.
package struct TriedChunks: Sendable {
  /// The time for each identifier of each chunk, in seconds, without commits.
  private var times: [Double] = []
  private var rows = 0
  private var pages = 0

  mutating func add(_ rows: Int, _ duration: Duration, pages: Int = 0) {
    times.append(duration / .seconds(1) / Double(max(rows, 1)))
    self.rows += rows
    self.pages += pages
  }

  /// The time for an identifier; the median, since somebody else may have had the processor.
  package var secondsPerRow: Double { times.sorted()[times.count / 2] }

  /// The pages that were read for an identifier, nearly all of which a change also writes.
  package var pagesPerRow: Double { Double(pages) / Double(max(rows, 1)) }
}

extension BulkChange {
  /// Changes chunks as a run does, and rolls each back at once, to find out how long a run takes.
  ///
  /// No page reaches the database or its log. Others wait for the lock as long as for a chunk of a
  /// run.
  ///
  /// - Parameters:
  ///   - chunks: The chunks; the first one warms up the others.
  ///   - isRowByRow: Whether each row has its own statement.
  ///   - enforcesForeignKeys: Whether foreign keys are enforced.
  ///   - limit: How long others may wait at most for one of them.
  ///   - store: The store.
  /// - Returns: Nil if they fail, take longer or cannot be tried, as when somebody else writes.
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
      // Nothing may leave the cache before it is rolled back, nor a journal be written.
      try connection.execute("PRAGMA cache_spill = OFF")
      try connection.execute("PRAGMA temp_store = memory")
      if try connection.journalMode() != "wal" {
        _ = try connection.value("PRAGMA journal_mode = memory")
      }
      if enforcesForeignKeys { try connection.execute("PRAGMA foreign_keys = ON") }
      var tried = TriedChunks()
      for (index, keys) in chunks.enumerated() {
        let keys = isRowByRow ? keys.singly : keys
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
        guard written != nil else { return nil }
        if index == 0, chunks.count > 1 { continue }
        tried.add(keys.identifierCount, start.duration(to: end), pages: connection.takeReadPages())
      }
      return tried
    } catch {
      return nil
    }
  }
}
