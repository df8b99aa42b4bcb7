public import BatchIdentifiers
import BatchStore

extension ModelContext {
  /// What a query computes: a value per column and a result per group, in the query's order and,
  /// among equals, in the order of the groups' keys.
  ///
  /// Unsaved changes do not count, as with ``fetchProperties(_:distinct:)``.
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
