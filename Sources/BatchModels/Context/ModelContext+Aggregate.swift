public import BatchIdentifiers
import BatchStore

extension ModelContext {
  /// What a query computes, a value for each of its columns and a result for each group; in the order
  /// that the query says, and of the keys of the groups where that leaves them equal.
  ///
  /// What was not saved does not count, as with ``fetchProperties(_:distinct:)``.
  ///
  /// - Throws: As `fetch(_:)` does for the rows; `BatchError` with code `unknownAttribute` for a
  ///   property that is no attribute, `valueMismatch` for a row that does not fit its class,
  ///   `predicateFailed` for a sum that is more than its type can hold.
  /// - Complexity: One statement.
  public func fetch<Model: PersistentModel, each Value>(
    _ query: AggregateQuery<Model, repeat each Value>
  ) throws(BatchError) -> [(repeat each Value)] {
    try read(Model.self) { entity, connection throws(BatchError) in
      try query.groups(of: entity, in: container, connection)
    }
  }

  /// SQLite's plan for a query, in its own words and in others, and the indexes that it misses.
  ///
  /// - Throws: As `fetch(_:)` does.
  /// - Complexity: No row is read.
  public func explain<Model: PersistentModel, each Value>(
    _ query: AggregateQuery<Model, repeat each Value>
  ) throws(BatchError) -> FetchPlan {
    try read(Model.self) { entity, connection throws(BatchError) in
      try query.plan(of: entity, in: container, connection)
    }
  }
}
