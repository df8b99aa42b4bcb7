import BatchRuns
package import BatchIdentifiers

/// An interruptible fetch of identifiers by one or several readers.
///
/// Several readers share the work if rows are selected in rowid order, and SQLite can find them in
/// a range of rowids without reading others. Each reader then fetches its own ranges on its own
/// connection, all from the same snapshot of the database. Otherwise, a single reader fetches
/// everything.
package struct IdentifierFetch: Sendable {
  /// The approximate number of ranges per reader; a reader takes the next range when it finishes
  /// one, since rows may be distributed unevenly.
  private static let rangesPerReader = 8
  /// The smallest span of rowids that justifies a second connection.
  private static let smallestSpan = 100_000
  /// How often to try to find a moment without commits.
  private static let attempts = 8

  private let query: IdentifierQuery
  private let readers: [StoreConnection]
  private let spill: BlockSpill?

  /// Prepares a fetch by at most `count` connections; reads nothing.
  ///
  /// `spill` is where the list's blocks go; nil keeps them all in memory.
  package init(
    _ query: IdentifierQuery,
    from store: Store,
    readers count: Int,
    spill: BlockSpill? = nil
  ) {
    self.query = query
    self.spill = spill
    let others = (1..<max(1, count)).map { store.makeConnection(label: "batch.fetch.\($0)") }
    readers = [store.connection(label: "batch.fetch.0")] + others
  }

  /// Makes the fetch fail with `BatchError` of code `interrupted`, from any thread.
  package func interrupt() {
    for reader in readers { reader.interrupt() }
  }

  /// The identifiers of committed rows, all from one snapshot.
  ///
  /// - Complexity: O(*n*) time. Needs memory only for the part of the compressed list that is not
  ///   spilled.
  package func run(store: StoreIdentity) async throws(BatchError) -> PackedIdentifiers {
    do throws(BatchError) { return try await fetch(store) } catch { throw query.located(error) }
  }

  private func fetch(_ store: StoreIdentity) async throws(BatchError) -> PackedIdentifiers {
    let (query, spill) = (query, spill)
    let list = try await readers[0].perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) -> PackedIdentifiers? in
        try query.expected?.verify(in: connection)
        if let all = try query.fetchUnbroken(in: connection, store: store) {
          return all.packed
        }
        return try query.fetchFew(in: connection, store: store)?.packed
      }
    }
    if let list { return list }
    if readers.count > 1, let ranges = try await beginTogether() {
      return try await fetch(ranges, store)
    }
    return try await readers[0].perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        try query.expected?.verify(in: connection)
        return try query.fetch(in: connection, store: store, spill: spill)
      }
    }
  }

  // MARK: Several readers

  /// Begins a transaction on each reader, all with the same snapshot.
  ///
  /// - Returns: The ranges to fetch; nil, with no transaction begun, if a single reader is to fetch
  ///   everything.
  private func beginTogether() async throws(BatchError) -> [ClosedRange<Int64>]? {
    let bounds = try await readers[0].perform { connection throws(BatchError) in
      try query.rangeOfRowIDs(in: connection)
    }
    guard let bounds, bounds.span >= Self.smallestSpan else { return nil }
    // The last reader watches for commits, so it begins after the others. The number changes with
    // each commit of another connection (https://sqlite.org/pragma.html#pragma_data_version).
    let watcher = readers[readers.count - 1]
    for _ in 0..<Self.attempts {
      let before = try await watcher.perform(Self.dataVersion)
      for reader in readers {
        try await reader.perform { [query] connection throws(BatchError) in
          try Self.begin(connection)
          try query.expected?.verify(in: connection)
        }
      }
      let after = try await watcher.perform(Self.dataVersion)
      if before == after { return bounds.split(into: readers.count * Self.rangesPerReader) }
      for reader in readers { try await reader.perform(Self.end) }
    }
    return nil
  }

  @Sendable private static func dataVersion(
    _ connection: Connection
  ) throws(BatchError) -> SQLValue? {
    try connection.value("PRAGMA data_version")
  }

  private static func begin(_ connection: Connection) throws(BatchError) {
    try connection.execute("BEGIN")
    // A deferred transaction begins with its first read.
    _ = try connection.value("SELECT count(*) FROM sqlite_schema")
  }

  @Sendable private static func end(_ connection: Connection) throws(BatchError) {
    try connection.execute("COMMIT")
  }

  private func fetch(
    _ ranges: [ClosedRange<Int64>],
    _ store: StoreIdentity
  ) async throws(BatchError) -> PackedIdentifiers {
    let next = Lock(0)
    let (query, spill) = (query, spill)
    // A task group's errors are untyped, so tasks return theirs as values.
    let answers = await withTaskGroup(of: Result<[(Int, PackedIdentifiers)], BatchError>.self) {
      group in
      for reader in readers {
        group.addTask {
          var lists: [(Int, PackedIdentifiers)] = []
          do throws(BatchError) {
            while let index = next.withLock({ Self.take(&$0, of: ranges.count) }) {
              let list = try await reader.perform { connection throws(BatchError) in
                try query.fetch(ranges[index], in: connection, store: store, spill: spill)
              }
              lists.append((index, list))
            }
            try await reader.perform(Self.end)
            return .success(lists)
          } catch {
            // The other readers can stop.
            next.withLock { $0 = ranges.count }
            return .failure(error)
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    var lists: [(Int, PackedIdentifiers)] = []
    for answer in answers { lists += try answer.get() }
    let parts = lists.sorted { $0.0 < $1.0 }.map(\.1)
    return .joining(parts, isSorted: query.isOfRowIDs ? true : try Self.isSorted(parts))
  }

  /// Whether the keys of consecutive lists ascend throughout.
  private static func isSorted(_ parts: [PackedIdentifiers]) throws(BatchError) -> Bool {
    let parts = parts.filter { $0.count > 0 }
    guard parts.allSatisfy(\.isSorted) else { return false }
    for (part, next) in zip(parts, parts.dropFirst()) {
      if try part.key(at: part.count - 1) >= next.key(at: 0) { return false }
    }
    return true
  }

  private static func take(_ next: inout Int, of count: Int) -> Int? {
    guard next < count else { return nil }
    next += 1
    return next - 1
  }
}

extension IdentifierQuery {
  /// The same query, whose fetch fails if the schema of what it reads changes.
  package func expectingSchema(in connection: Connection) throws(BatchError) -> IdentifierQuery {
    var query = self
    query.expected = try ExpectedSchema(
      of: entity,
      key: key,
      target: entity,
      columns: [],
      statements: [sql],
      isWhole: false,
      in: connection
    )
    return query
  }
}
