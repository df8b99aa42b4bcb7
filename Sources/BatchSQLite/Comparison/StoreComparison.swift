package import BatchIdentifiers
package import BatchJobs
import BatchPlatform
import BatchRuns

/// The differences between a database and a file that should be a copy of it.
///
/// Every row of every table is compared by key, byte for byte. Views and virtual tables are not
/// data, but the tables behind virtual tables are. Excludes runs' `_batch_…` tables and SQLite's
/// statistics.
package struct StoreComparison: Sendable {
  package let tables: Int
  /// The number of compared rows, including those in only one of the databases.
  package let rows: Int
  /// The number of rows that runs have set, deleted and copied, and that are as they should be.
  package let set: Int
  package let deleted: Int
  package let copied: Int
  package let counts: [StoreDifference.Kind: Int]
  package let differences: [StoreDifference]
  /// The changes in each changed table; empty unless requested.
  package let changes: [TableChanges]
  /// The number of unexpected differences in each table that has any.
  package let byTable: [TableDifferences]
  package let uncompared: [UncomparedTable]
  /// The columns that runs have set, as `table.column`, whose values were computed again.
  package let computedColumns: [String]
  /// What differs and was not checked.
  package let unchecked: [UncheckedPart]
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
  ///   - copy: A table in the other one that has the rows of the runs' table as they were; nil to
  ///     compare all tables with those of the same name.
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
    table copy: String? = nil,
    for aim: ComparisonAim,
    workers: Int = defaultWorkers,
    partCount: Int = partCount,
    progress: @escaping @Sendable (Int) -> Void
  ) async throws(BatchError) {
    let connections = ComparedDatabases(store, file, workers: workers)
    do throws(BatchError) {
      try await connections.open()
      let schema = try await connections.readers[0].perform { connection throws(BatchError) in
        if let copy, let run = aim.runs.first {
          return try SchemaComparison(of: run, with: copy, in: connection)
        }
        return try SchemaComparison(in: connection, creating: aim.creates)
      }
      if let table = schema.uncompared.first(where: { table in
        aim.runs.contains { $0.concerns(table.table) }
      }) {
        throw BatchError(.invalidSQL, table.note, at: file)
      }
      let ruled = try await connections.readers[0].perform {
        connection throws(BatchError) -> [RuledTable] in
        try RowComparison(aim.runs.map(\.rows)).register(in: connection)
        return try schema.tables.map { table throws(BatchError) in
          (
            table: table,
            rules: try TableRules(of: table, among: schema.tables, aim, in: connection)
          )
        }
      }
      // Compare archives first: copies are checked once rows are missing.
      let count = Lock(0)
      var tallies: [(tables: [RuledTable], tally: ComparisonTally)] = []
      for tables in [
        ruled.filter { !$0.rules.copies.isEmpty }, ruled.filter { $0.rules.copies.isEmpty },
      ] {
        let cutter = Lock(RangeCutter(tables.map(\.table), rowCount: partCount))
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
      computedColumns = ruled.flatMap { table, rules in
        table.columns.enumerated().filter { number, name in
          rules.expected?.checked.contains(name) == true && !rules.isFree
            && !rules.freeColumns.contains { $0.number == number }
        }.map { "\(table.name).\($0.element)" }
      }
      unchecked = tallies.flatMap { tables, tally in
        tables.enumerated().flatMap { index, table in
          tally.tables[index].map { table.rules.unchecked(in: table.table, $0) } ?? []
        }
      }
      rows = tallies.reduce(0) { $0 + $1.tally.rows }
      set = tallies.reduce(0) { $0 + $1.tally.set }
      deleted = tallies.reduce(0) { $0 + $1.tally.deleted }
      copied = tallies.reduce(0) { $0 + $1.tally.copied }
      byTable = tallies.flatMap { tables, tally in
        tables.enumerated().compactMap { index, table in
          tally.tables[index].flatMap { counts in
            TableDifferences(
              table.table.name,
              counts.counts,
              zip(table.table.columns, counts.columns).filter { $0.1 > 0 }
                .map { .init(name: $0, rows: $1) }
            )
          }
        }
      }
      var counts = tallies.reduce(into: [:]) { $0.merge($1.tally.counts, uniquingKeysWith: +) }
      changes =
        aim.countsColumns
        ? tallies.flatMap {
          TableChanges.all($0.tables.map(\.table), $0.tally, samples: aim.samples)
        } : []
      counts[.schema] = schema.differences.count
      // Whatever a run has done must be in the copy, or have been found in the database alone.
      let lost =
        aim.runs.reduce(0) { $0 + $1.rows.presentCount }
        - tallies.reduce(0) { $0 + $1.tally.found }
      var ofRuns = schema.differences
      if lost > 0, let run = aim.runs.last {
        counts[.outcome, default: 0] += lost
        ofRuns.append(
          StoreDifference(
            .outcome,
            run.table,
            detail:
              "\(lost.grouped) of the rows that were done are neither in the database nor in the"
              + " copy"
          )
        )
      }
      self.counts = counts
      let found =
        aim.countsColumns ? [] : tallies.flatMap { $0.tally.differences.map(\.difference) }
      differences = Array((ofRuns + found).prefix(aim.limit))
      movedTables = tallies.flatMap { tables, tally in
        tables.enumerated().filter { index, table in
          guard table.table.hasHiddenRowID, let sum = tally.tables[index] else { return false }
          return sum.moved > 1 && sum.moved > sum.rows / 2
        }.map(\.element.table.name)
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

private typealias RuledTable = (table: ComparedTable, rules: TableRules)

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
    _ tables: [RuledTable],
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
    _ tables: [RuledTable],
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
