public import BatchRuns
public import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

struct UnsavedStatement: Sendable {
  let store: Int
  let sql: String
  let values: [SQLValue]
}

extension ModelContext {
  /// Makes the next save run an SQL statement, in its transaction, after writing objects.
  ///
  ///     try context.executeOnSave("UPDATE totals SET orders = orders + ?", .integer(Int64(count)))
  ///
  /// In a run by objects, this is the transaction of the chunk, which also records the chunk as
  /// done: the statement takes effect exactly once. The context does not notice which rows it
  /// changes; ``rollback()`` and ``reset()`` forget it.
  ///
  /// - Parameters:
  ///   - sql: A single statement, with a `?` for each value. It can neither end the transaction nor
  ///     attach databases.
  ///   - values: The values of the placeholders.
  ///   - store: The index of the store in the container.
  /// - Throws: `BatchError` of code `readOnly` for a store that cannot be written, `invalidSQL` if
  ///   there is no store with the index. If the statement fails, the save throws `invalidSQL` or
  ///   `constraint` and saves nothing.
  public func executeOnSave(
    _ sql: String,
    _ values: SQLValue...,
    inStore store: Int = 0
  ) throws(BatchError) {
    try throwNoted()
    try container.requireStore(at: store)
    try requireWritable(store)
    statements.append(UnsavedStatement(store: store, sql: sql, values: values))
  }

  /// Marks all objects of a class that satisfy a predicate, for deletion by the next save:
  /// SwiftData's `delete(model:where:includeSubclasses:)`.
  ///
  /// Delete rules apply as for individual deletions. If there are more rows than fit into memory,
  /// use ``BatchDeleteRequest`` or a run by objects.
  ///
  /// - Parameters:
  ///   - type: The class of the objects.
  ///   - predicate: The condition; nil for all objects.
  ///   - includeSubclasses: Whether to delete objects of sub-entities too.
  /// - Throws: An error of `fetch(_:)`; nothing is then marked.
  public func delete<Model: PersistentModel>(
    model type: Model.Type,
    where predicate: Predicate<Model>? = nil,
    includeSubclasses: Bool = true
  ) throws(BatchError) {
    var descriptor = FetchDescriptor<Model>(predicate: predicate)
    descriptor.includesSubentities = includeSubclasses
    for object in try fetch(descriptor) { delete(object) }
  }
}
