package import BatchIdentifiers

/// Finding few rows by an index of the condition, where SQLite would look at all rows.
///
/// Rowids are selected in their order. SQLite, which cannot know how many rows satisfy a condition such as
/// `created_at < …`, then often reads the whole table in that order rather than find rows by an index and sort them.
/// Where they are few, that is the wrong choice.
extension IdentifierQuery {
  /// Fetches the rowids by an index and sorts them, if SQLite would look at all rows and an index finds few; nil otherwise.
  ///
  /// To be called inside one read transaction. That there are many is found out by trying, in a small part of the steps that
  /// it takes to look at all rows.
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

  /// SQLite's plan for fetching so many rows, with the statement that it is for.
  package func plan(
    forRows count: Int,
    in connection: Connection
  ) throws(BatchError) -> (sql: String, plan: QueryPlan) {
    guard try isBetterByIndex(in: connection), let bounds = try boundsOfRowIDs(in: connection),
      count * Self.stepsPerRow < min(bounds.span / Self.rowsPerStep, Self.mostSteps)
    else { return (sql, try QueryPlan(of: sql, in: connection)) }
    return (unorderedSQL, try QueryPlan(of: unorderedSQL, in: connection))
  }

  /// It takes SQLite about five steps to look at a row, so a trial costs a twentieth of looking at all.
  private static let rowsPerStep = 4
  /// About so many steps are taken for a row that an index finds.
  private static let stepsPerRow = 8
  /// So that no trial keeps more than some megabytes of rowids.
  private static let mostSteps = 4_000_000

  private var unorderedSQL: String {
    "SELECT \(SQLName.quoted(key.columns[0])) FROM \(entity.rowSource)\(condition)"
  }

  private func isBetterByIndex(in connection: Connection) throws(BatchError) -> Bool {
    guard isOfRowIDs, !condition.isEmpty else { return false }
    guard try QueryPlan(of: sql, in: connection).scans(entity.table) else { return false }
    return try !QueryPlan(of: unorderedSQL, in: connection).scans
  }

  /// The rowids in the order of the index; nil if it takes SQLite more steps than so many.
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
