package import BatchIdentifiers

/// Finds a few rows by an index for the condition where SQLite would scan the table.
///
/// Rowids are selected in ascending order. SQLite cannot know how many rows satisfy a condition
/// such as `created_at < …`, so it often reads the whole table in that order instead of finding
/// rows by an index and sorting them. For few rows, that is the wrong choice.
extension IdentifierQuery {
  /// Fetches the rowids by an index and sorts them, if SQLite would scan the table and an index
  /// finds few; otherwise nil.
  ///
  /// Must be called inside one read transaction. Decides by a trial that takes a small part of a
  /// scan's steps.
  package func fetchFew(
    in connection: Connection,
    store: StoreIdentity
  ) throws(BatchError) -> IdentifierList? {
    guard try isBetterByIndex(in: connection), let bounds = try boundsOfRowIDs(in: connection),
      var rowIDs = try rowIDsByIndex(
        within: min(bounds.span / Self.rowsPerStep, Self.mostSteps),
        in: connection
      )
    else { return nil }
    rowIDs.sort()
    var builder = IdentifierListBuilder(
      storeIdentifier: store.uuid,
      entityName: entity.name,
      keyKind: .integer
    )
    builder.append(contentsOf: rowIDs)
    let list = builder.finish()
    guard list.isSorted else { throw outOfOrder(in: connection) }
    return list
  }

  /// SQLite's plan for fetching this many rows, with the statement.
  package func plan(
    forRows count: Int,
    in connection: Connection
  ) throws(BatchError) -> (sql: String, plan: QueryPlan) {
    guard try isBetterByIndex(in: connection), let bounds = try boundsOfRowIDs(in: connection),
      count * Self.stepsPerRow < min(bounds.span / Self.rowsPerStep, Self.mostSteps)
    else { return (sql, try QueryPlan(of: sql, in: connection)) }
    return (unorderedSQL, try QueryPlan(of: unorderedSQL, in: connection))
  }

  /// SQLite takes about five steps per scanned row, so a trial costs a twentieth of a scan.
  private static let rowsPerStep = 4
  private static let stepsPerRow = 8
  /// Limits the rowids held by a trial to a few megabytes.
  private static let mostSteps = 4_000_000

  private var unorderedSQL: String {
    "SELECT \(SQLName.quoted(key.columns[0])) FROM \(entity.rowSource)\(condition)"
  }

  private func isBetterByIndex(in connection: Connection) throws(BatchError) -> Bool {
    guard isOfRowIDs, !condition.isEmpty else { return false }
    guard try QueryPlan(of: sql, in: connection).scans(entity.table) else { return false }
    return try !QueryPlan(of: unorderedSQL, in: connection).scans
  }

  /// The rowids in index order; nil if SQLite needs more steps than the limit.
  private func rowIDsByIndex(
    within steps: Int,
    in connection: Connection
  ) throws(BatchError) -> [Int64]? {
    guard steps > 0 else { return nil }
    let statement = try connection.prepare(unorderedSQL)
    try bind(to: statement)
    statement.resetStepCount()
    return try connection.within(steps: steps) { () throws(BatchError) in
      var rowIDs: [Int64] = []
      while try statement.step() { rowIDs.append(statement.integer(at: 0)) }
      return rowIDs
    }
  }
}
