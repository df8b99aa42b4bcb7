import BatchEngine
package import BatchIdentifiers

/// Has every transaction of a run find the schema as the run needs it.
package struct ExpectedRows: Sendable {
  private let entity: Entity
  private let shape: RowShape
  private let usage: RowUsage

  /// - Parameters:
  ///   - entity: The entity whose rows are read or written: a table, view or virtual table.
  ///   - shape: Its shape when the run began.
  ///   - usage: What the run depends on.
  package init(_ entity: Entity, shape: RowShape, usage: RowUsage) {
    self.entity = entity
    self.shape = shape
    self.usage = usage
  }

  /// Verifies the schema in a transaction, which keeps others from changing it.
  ///
  /// Costs a look at a number if the schema has not changed since the connection's last call.
  ///
  /// - Throws: `BatchError` of code `otherRun` if it has changed in a way that concerns the run.
  package func verify(in connection: Connection) throws(BatchError) {
    let version = try connection.value("PRAGMA main.schema_version")
    guard version != connection.verifiedSchema else { return }
    let now = try connection.currentShape(of: entity)
    let change = if let now { shape.change(to: now, concerning: usage) } else { "is gone" }
    guard let change else {
      connection.verifiedSchema = version
      return
    }
    throw BatchError(
      .otherRun,
      "since the run began, the schema has changed: \"\(entity.name)\" \(change)",
      at: entity.table,
      advice: usage.isWhole && change.hasPrefix("has got")
        ? "add the columns to the archive if there is one, and \(.beginAnew)"
        : "undo that and \(.repetition): it resumes; or \(.beginAnew)"
    )
  }
}

extension Connection {
  /// The shape of an entity as it is now, with the key that identifies the run's rows; nil if it is
  /// gone.
  fileprivate func currentShape(of entity: Entity) throws(BatchError) -> RowShape? {
    let entities = try Schema(reading: self, only: entity.table).entities
    guard var now = entities.first else { return nil }
    // Nothing in the schema backs a key that the job declares.
    if let key = entity.key, key.origin == .declared { now = now.identified(by: key) }
    return try shape(of: now)
  }
}
