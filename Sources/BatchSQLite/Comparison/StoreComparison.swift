import BatchRuns
public import BatchIdentifiers
import BatchPlatform

extension BatchError.Code {
  /// A file is not a copy of the database that it is compared with.
  public static let otherStore = Self(rawValue: "otherStore")
}

/// The differences between a database and a file that should be a copy of it.
///
/// Every row of every table is compared by key, byte for byte. Views and virtual tables are not
/// data, but the tables behind virtual tables are. Excludes runs' `_batch_…` tables and SQLite's
/// statistics.
package struct StoreComparison: Sendable {
  package let tables: Int
  /// The number of compared rows, including those in only one of the databases.
  package let rows: Int
  /// The number of rows that differ as expected: those with other values, those deleted, and copies
  /// in the archive.
  package let changed: Int
  package let deleted: Int
  package let copied: Int
  package let counts: [StoreDifference.Kind: Int]
  package let differences: [StoreDifference]
  /// The changes in each changed table; empty unless requested.
  package let changes: [TableChanges]
  /// The number of unexpected differences in each table that has any.
  package let byTable: [TableDifferences]
  package let uncompared: [UncomparedTable]
  /// The columns, as `table.column`, that selected rows may have changed, so that their new values
  /// were not checked.
  package let uncheckedColumns: [String]
  /// Tables in which most rows differ and have only rowids, which SQLite may change.
  package let movedTables: [String]

  /// Few enough rows to stay in the cache until they are read again.
  package static let partCount = 8192
  /// The number of cores, up to a few, since more workers wait for the disk and for one another.
  package static var defaultWorkers: Int {
    min(max(ProcessInfo.processInfo.activeProcessorCount, 1), 8)
  }

  /// Compares two databases.
  ///
  /// - Parameters:
  ///   - store: The database.
  ///   - file: The path of the other one.
  ///   - aim: What to report.
  ///   - workers: How many parts are compared at a time.
  ///   - partCount: The maximum number of rows per part.
  ///   - progress: Called with the number of rows compared so far, on any thread.
  /// - Throws: `BatchError` of code `busy` if others write all the time, or errors of SQLite.
  /// - Complexity: O(*n*) in the rows of both; holds a few pages of each, and the reported
  ///   differences.
  package init(
    of store: Store,
    and file: String,
    for aim: ComparisonAim,
    workers: Int = defaultWorkers,
    partCount: Int = partCount,
    progress: @escaping @Sendable (Int) -> Void
  ) async throws(BatchError) {
    let connections = ComparedDatabases(store, file, workers: workers)
    do throws(BatchError) {
      try await connections.open()
      let schema = try await connections.readers[0].perform { connection throws(BatchError) in
        try SchemaComparison(in: connection, creating: aim.creates)
      }
      if let table = schema.uncompared.first(where: { aim.expected?.concerns($0.table) == true }) {
        throw BatchError(.invalidSQL, table.note, at: file)
      }
      let aim = aim.limited(to: schema.tables)
      // Compare the archive first: copies are checked once rows are missing.
      let isArchive = { (table: ComparedTable) in
        aim.expected?.archive.map { SQLName.equal($0.table, table.name) } ?? false
      }
      let count = Lock(0)
      var tallies: [(tables: [ComparedTable], tally: ComparisonTally)] = []
      for tables in [schema.tables.filter(isArchive), schema.tables.filter { !isArchive($0) }] {
        let cutter = Lock(RangeCutter(tables, rowCount: partCount))
        let tally = try await connections.compare(cutter, tables, aim) { rows in
          progress(
            count.withLock { count in
              count += rows
              return count
            }
          )
        }
        tallies.append((tables, tally))
      }
      await connections.close()

      self.tables = schema.tables.count
      uncompared = schema.uncompared
      uncheckedColumns = schema.tables.flatMap { table in
        let free = aim.expected?.columns(of: table) ?? []
        return table.columns.filter(free.contains).map { "\(table.name).\($0)" }
      }
      rows = tallies.reduce(0) { $0 + $1.tally.rows }
      changed = tallies.reduce(0) { $0 + $1.tally.changed }
      deleted = tallies.reduce(0) { $0 + $1.tally.deleted }
      copied = tallies.reduce(0) { $0 + $1.tally.copied }
      byTable = tallies.flatMap { tables, tally in
        tables.enumerated().compactMap { index, table in
          tally.tables[index].flatMap { TableDifferences(table, $0) }
        }
      }
      var counts = tallies.reduce(into: [:]) { $0.merge($1.tally.counts, uniquingKeysWith: +) }
      changes =
        aim.countsColumns
        ? tallies.flatMap { TableChanges.all($0.tables, $0.tally, samples: aim.samples) } : []
      counts[.schema] = schema.differences.count
      self.counts = counts
      let found =
        aim.countsColumns ? [] : tallies.flatMap { $0.tally.differences.map(\.difference) }
      differences = Array((schema.differences + found).prefix(aim.limit))
      movedTables = tallies.flatMap { tables, tally in
        tables.enumerated().filter { index, table in
          guard table.hasHiddenRowID, let sum = tally.tables[index] else { return false }
          return sum.moved > 1 && sum.moved > sum.rows / 2
        }.map(\.element.name)
      }
    } catch {
      await connections.close()
      guard error.code == .notADatabase else { throw error }
      // SQLite does not say which of the two is damaged.
      var either = error
      either.place = "\(store.path) or \(file)"
      throw either
    }
  }
}

/// Connections that see one snapshot of two databases, each on its own thread.
private struct ComparedDatabases: Sendable {
  let readers: [StoreConnection]
  private let file: String
  /// Notices writes of other processes.
  private let watch: StoreConnection
  /// Restores the other file if reading it creates a log.
  private let last: StoreConnection

  init(_ store: Store, _ file: String, workers: Int) {
    self.file = file
    var options = store.options
    options.isReadOnly = true
    readers = (0..<workers).map { number in
      StoreConnection(label: "batch.compare\(number)", path: store.path, options: options)
    }
    watch = StoreConnection(label: "batch.watch", path: store.path, options: options)
    last = StoreConnection(label: "batch.other", path: file, options: options)
  }

  /// Begins to read the same snapshot on all connections.
  func open() async throws(BatchError) {
    let file = file
    let encoding = try await last.perform(Self.encoding)
    guard try await watch.perform(Self.encoding) == encoding else {
      throw BatchError(
        .otherStore,
        "this is another database: it keeps texts in another encoding",
        at: file,
        remedy: "name a copy of the database"
      )
    }
    for connection in readers + [watch] {
      try await connection.perform { connection throws(BatchError) in
        try connection.attach(file, as: DatabaseName.file.rawValue)
        let name = SQLName.quoted(DatabaseName.file.rawValue)
        try connection.execute("PRAGMA \(name).cache_size = -4096")
      }
    }
    for _ in 0..<100 {
      let before = try await watch.perform(Self.versions)
      for reader in readers { try await reader.perform(Self.begin) }
      if try await watch.perform(Self.versions) == before { return }
      for reader in readers {
        try await reader.perform { connection throws(BatchError) in
          try connection.execute("ROLLBACK")
        }
      }
    }
    throw BatchError(
      .busy,
      "somebody keeps writing to the database",
      at: file,
      remedy: "compare copies, or repeat when nobody writes"
    )
  }

  private static func encoding(_ connection: Connection) throws(BatchError) -> SQLValue? {
    try connection.value("PRAGMA encoding")
  }

  private static func versions(_ connection: Connection) throws(BatchError) -> [SQLValue?] {
    [
      try connection.value("PRAGMA main.data_version"),
      try connection.value("PRAGMA \(SQLName.quoted(DatabaseName.file.rawValue)).data_version"),
    ]
  }

  private static func begin(_ connection: Connection) throws(BatchError) {
    try connection.execute("BEGIN")
    // A deferred transaction begins with its first read.
    for name in [DatabaseName.database, .file] {
      _ = try connection.value(
        "SELECT count(*) FROM \(SQLName.quoted(name.rawValue)).sqlite_schema"
      )
    }
  }

  func compare(
    _ cutter: Lock<RangeCutter>,
    _ tables: [ComparedTable],
    _ aim: ComparisonAim,
    progress: @escaping @Sendable (Int) -> Void
  ) async throws(BatchError) -> ComparisonTally {
    let answers = await withTaskCancellationHandler {
      await compareAll(cutter, tables, aim, progress: progress)
    } onCancel: {
      for reader in readers { reader.interrupt() }
    }
    var sum = ComparisonTally()
    for answer in answers { sum.add(try answer.get(), limit: aim.limit * readers.count) }
    return sum
  }

  private func compareAll(
    _ cutter: Lock<RangeCutter>,
    _ tables: [ComparedTable],
    _ aim: ComparisonAim,
    progress: @escaping @Sendable (Int) -> Void
  ) async -> [Result<ComparisonTally, BatchError>] {
    // A task group's errors are untyped, so tasks return theirs as values.
    await withTaskGroup(of: Result<ComparisonTally, BatchError>.self) { group in
      for reader in readers {
        group.addTask {
          do throws(BatchError) {
            return .success(
              try await reader.perform { connection throws(BatchError) in
                try RowComparer(tables, aim, in: connection)
                  .compare(cutter, progress: progress)
              }
            )
          } catch {
            return .failure(error)
          }
        }
      }
      var answers: [Result<ComparisonTally, BatchError>] = []
      for await answer in group {
        // The other readers can stop.
        if case .failure = answer { for reader in readers { reader.interrupt() } }
        answers.append(answer)
      }
      return answers
    }
  }

  func close() async {
    for connection in readers + [watch, last] { await connection.close() }
  }
}
