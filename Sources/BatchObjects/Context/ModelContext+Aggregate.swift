public import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// The results of a query: a value per column and a result per group, in the query's order and,
  /// among equals, in the order of the groups' keys.
  ///
  /// Unsaved changes do not count, as with ``fetchProperties(_:distinct:)``.
  ///
  /// - Throws: As `fetch(_:)` does for the rows; `BatchError` with code `unknownAttribute` for a
  ///   property that is not an attribute, `valueMismatch` for a row that does not fit its class,
  ///   `predicateFailed` for a sum that overflows its type.
  /// - Complexity: One statement.
  public func fetch<Model: PersistentModel, each Value>(
    _ query: AggregateQuery<Model, repeat each Value>
  ) throws(BatchError) -> [(repeat each Value)] {
    try read(Model.self) { entity, connection throws(BatchError) in
      try query.groups(of: entity, in: container, connection)
    }
  }

  /// SQLite's plan for a query, in SQLite's text and in words, and the missing indexes.
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
