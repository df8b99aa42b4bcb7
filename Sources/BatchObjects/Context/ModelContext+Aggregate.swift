public import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// Fetches the results of a query: one result per group, with a value per column.
  ///
  /// The groups have the order of the query; those that it leaves equal are in the order of their
  /// keys. Unsaved changes do not count, as with ``fetchProperties(_:distinct:)``.
  ///
  /// - Throws: An error of `fetch(_:)` for the rows; `BatchError` with code `unknownAttribute` for
  ///   a property that is not an attribute, `valueMismatch` for a row that does not fit its class,
  ///   `predicateFailed` for a sum that overflows its type.
  /// - Complexity: One statement.
  public func fetch<Model: PersistentModel, each Value>(
    _ query: AggregateQuery<Model, repeat each Value>
  ) throws(BatchError) -> [(repeat each Value)] {
    try read(Model.self) { entity, connection throws(BatchError) in
      try query.groups(of: entity, in: container, connection)
    }
  }

  /// Returns SQLite's plan for a query, in its own text and in words, and the missing indexes.
  ///
  /// - Throws: An error of `fetch(_:)`.
  /// - Complexity: No row is read.
  public func explain<Model: PersistentModel, each Value>(
    _ query: AggregateQuery<Model, repeat each Value>
  ) throws(BatchError) -> FetchPlan {
    try read(Model.self) { entity, connection throws(BatchError) in
      try query.plan(of: entity, in: container, connection)
    }
  }
}
