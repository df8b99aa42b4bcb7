#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

/// An interruptible fetch of identifiers by one or several readers.
///
/// The keys come by `COPY … TO STDOUT (FORMAT binary)` straight into the list, in one short read-only transaction.
/// Several readers share the work if an index finds the rows of a range of integer keys, or if rows come as they lie in
/// the table: each then fetches ranges of its own on its own connection, all in one snapshot. If the server does not
/// support this COPY, a SELECT replaces it.
package struct PostgresFetch: Sendable {
  /// How keys are read.
  package enum Method: Sendable {
    case copy
    case select
  }

  /// About how many ranges each reader gets.
  ///
  /// A reader takes the next range when it finishes one, since rows need not be spread evenly.
  private static let rangesPerReader = 8
  /// More readers would wait for one another, and take connections from others.
  private static let mostReaders = 8

  private let query: PostgresQuery
  private let readers: [PostgresConnection]
  private let method: Method
  private let spill = BlockSpill()

  /// Prepares a fetch by at most `count` connections at once; reads nothing.
  package init(
    _ query: PostgresQuery,
    from address: ServerAddress,
    readers count: Int = 1,
    method: Method = .copy,
    within stop: PostgresInterrupter? = nil
  ) {
    self.query = query
    self.method = method
    readers = (0..<max(1, min(count, Self.mostReaders))).map { index in
      PostgresConnection(label: "batch.fetch.\(index)", address: address, within: stop)
    }
  }

  /// Makes the fetch fail with `BatchError` of code `interrupted`; callable from any thread.
  package func interrupt() {
    for reader in readers { reader.interrupt() }
  }

  /// Fetches the identifiers of committed rows, all as of one moment.
  ///
  /// - Parameter store: The UUID that the identifiers carry.
  /// - Returns: The identifiers, in the order of the query.
  /// - Throws: `BatchError` by the server's code, `unstableKey` if the rows cannot be identified.
  /// - Complexity: O(*n*) time; a few megabytes of memory, and a temporary file for the rest of the compressed list.
  package func run(store: String) async throws(BatchError) -> PackedIdentifiers {
    let answer: Result<PackedIdentifiers, BatchError>
    do throws(BatchError) {
      answer = .success(try await fetch(store))
    } catch {
      answer = .failure(query.explained(error))
    }
    for reader in readers { await reader.close() }
    return try answer.get()
  }

  private func fetch(_ store: String) async throws(BatchError) -> PackedIdentifiers {
    if method == .copy, let ranges = try await beginTogether() {
      return try await fetch(ranges, store)
    }
    do {
      return try await fetchAlone(method, store)
    } catch {
      let states: [SQLState] = [.featureNotSupported, .syntaxError]
      guard method == .copy, let state = error.postgres?.state, states.contains(state) else {
        throw error
      }
      return try await fetchAlone(.select, store)
    }
  }

  private func fetchAlone(
    _ method: Method,
    _ store: String
  ) async throws(BatchError) -> PackedIdentifiers {
    let (query, spill) = (query, spill)
    return try await readers[0].perform { session throws(BatchError) in
      try session.transaction(Self.options(query)) { () throws(BatchError) in
        try query.parameters.apply(in: session)
        try query.refuseDuplicates(in: session)
        return try query.fetch(method, in: session, store: store, spill: spill)
      }
    }
  }

  /// One snapshot of the database for all statements of a transaction.
  private static func options(_ query: PostgresQuery) -> TransactionOptions {
    TransactionOptions(.repeatableRead, isReadOnly: true, searchPath: query.path)
  }

  // MARK: Several readers

  /// Begins a transaction of each reader in the same snapshot.
  ///
  /// - Returns: The ranges to fetch; nil, with no transaction open, if one reader should fetch everything.
  private func beginTogether() async throws(BatchError) -> [ClosedRange<Int64>]? {
    let (query, count) = (query, readers.count)
    guard count > 1 || query.isInTableOrder else { return nil }
    let begun = try await readers[0].perform {
      session throws(BatchError) -> (ranges: [ClosedRange<Int64>], snapshot: String)? in
      try session.begin(Self.options(query))
      do throws(BatchError) {
        try query.parameters.apply(in: session)
        guard
          let ranges = try query.ranges(for: count, perReader: Self.rangesPerReader, in: session),
          let snapshot = try session.text("SELECT pg_export_snapshot()")
        else {
          session.rollBack()
          return nil
        }
        return (ranges, snapshot)
      } catch {
        session.rollBack()
        throw error
      }
    }
    guard let begun else { return nil }
    do {
      for reader in readers.dropFirst() {
        try await reader.perform { session throws(BatchError) in
          try Self.begin(session, query, at: begun.snapshot)
        }
      }
    } catch {
      for reader in readers { await Self.rollBack(reader) }
      // Another server at the same address does not know the snapshot, and there may be no connection left: one reader
      // needs neither.
      guard let server = error.postgres,
        !server.isConnectionLoss || server.state == .tooManyConnections
      else { throw error }
      return nil
    }
    return begun.ranges
  }

  /// Begins a transaction in the snapshot that another one exported.
  private static func begin(
    _ session: PostgresSession,
    _ query: PostgresQuery,
    at snapshot: String
  ) throws(BatchError) {
    // The statement takes no values; the server's names consist of letters, digits and hyphens.
    guard snapshot.wholeMatch(of: /[0-9A-Za-z\-]+/) != nil else {
      throw BatchError(.databaseAccess, "the server's snapshot has an unexpected name")
    }
    var options = options(query)
    options.snapshot = snapshot
    try session.begin(options)
    do throws(BatchError) {
      try query.parameters.apply(in: session)
    } catch {
      session.rollBack()
      throw error
    }
  }

  private static func rollBack(_ reader: PostgresConnection) async {
    try? await reader.perform { session throws(BatchError) in session.rollBack() }
  }

  private func fetch(
    _ ranges: [ClosedRange<Int64>],
    _ store: String
  ) async throws(BatchError) -> PackedIdentifiers {
    let next = Lock(0)
    let (query, spill) = (query, spill)
    // Group tasks throw untyped errors, so the tasks return theirs as values.
    let answers = await withTaskGroup(of: Result<[(Int, PackedIdentifiers)], BatchError>.self) {
      group in
      for reader in readers {
        group.addTask {
          var lists: [(Int, PackedIdentifiers)] = []
          do throws(BatchError) {
            while let index = next.withLock({ Self.take(&$0, of: ranges.count) }) {
              let list = try await reader.perform { session throws(BatchError) in
                try query.fetch(ranges[index], in: session, store: store, spill: spill)
              }
              lists.append((index, list))
            }
            return .success(lists)
          } catch {
            next.withLock { $0 = ranges.count }
            return .failure(error)
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    for reader in readers { await Self.rollBack(reader) }
    var lists: [(Int, PackedIdentifiers)] = []
    for answer in answers { lists += try answer.get() }
    return .joining(lists.sorted { $0.0 < $1.0 }.map(\.1), isSorted: !query.isInTableOrder)
  }

  private static func take(_ next: inout Int, of count: Int) -> Int? {
    guard next < count else { return nil }
    next += 1
    return next - 1
  }
}

extension PostgresQuery {
  fileprivate func fetch(
    _ method: PostgresFetch.Method,
    in session: PostgresSession,
    store: String,
    spill: BlockSpill
  ) throws(BatchError) -> PackedIdentifiers {
    switch method {
    case .copy: try copy(sql(.setting), in: session, store: store, spill: spill)
    case .select: try select(sql(.place), in: session, store: store, spill: spill)
    }
  }

  package func first(
    _ count: Int,
    in session: PostgresSession,
    store: String
  ) throws(BatchError) -> PackedIdentifiers {
    let sql = sql(.place, selecting: key.columns.map(\.selection), atMost: count)
    return try select(sql, in: session, store: store, spill: BlockSpill())
  }

  private func select(
    _ sql: String,
    in session: PostgresSession,
    store: String,
    spill: BlockSpill
  ) throws(BatchError) -> PackedIdentifiers {
    var keys = KeyCollector(self, store: store, spill: spill)
    try session.forEachRow(sql, parameters.values, format: .binary) { row throws(BatchError) in
      for column in key.columns.indices {
        try row.withValue(column) { value throws(BatchError) in try keys.append(value, column) }
      }
      try keys.endRow()
    }
    return keys.finish()
  }

  /// Fetches the identifiers of rows whose integer key, or whose page, is in a range.
  fileprivate func fetch(
    _ range: ClosedRange<Int64>,
    in session: PostgresSession,
    store: String,
    spill: BlockSpill
  ) throws(BatchError) -> PackedIdentifiers {
    guard session.isInTransaction else {
      let error = PostgresError("the snapshot is gone", state: .connectionFailure)
      throw BatchError(error, server: session.address.description)
    }
    return try copy(sql(.setting, in: range), in: session, store: store, spill: spill)
  }

  private func copy(
    _ sql: String,
    in session: PostgresSession,
    store: String,
    spill: BlockSpill
  ) throws(BatchError) -> PackedIdentifiers {
    var keys = KeyCollector(self, store: store, spill: spill)
    try session.copyOut("COPY (\(sql)) TO STDOUT (FORMAT binary)") { bytes throws(BatchError) in
      try keys.append(copied: bytes)
    }
    guard keys.isComplete else {
      throw BatchError(
        .databaseAccess,
        "the server did not send all identifiers",
        at: session.address.description
      )
    }
    return keys.finish()
  }
}
#endif
