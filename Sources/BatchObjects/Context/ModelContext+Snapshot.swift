import BatchRuns
public import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// Applies the changes of a snapshot to its object, to be saved; reads nothing.
  ///
  /// All other attributes of the object get the values of the snapshot too. If the row has changed
  /// since the snapshot, the save has a conflict, which ``mergePolicy`` resolves. So
  /// `context.delete(try context.apply(snapshot))` deletes the row only if it is unchanged.
  ///
  /// - Returns: The object, which is unchanged if the snapshot is.
  /// - Throws: `BatchError` with code `foreignIdentifier` for a snapshot of a store of another
  ///   container; `valueMismatch`, `immutableAttribute` or `unknownAttribute` for a value that
  ///   cannot be set; `objectNotFound` if the object is deleted here.
  @discardableResult
  public func apply<Model>(_ snapshot: ModelSnapshot<Model>) throws(BatchError) -> Model {
    try throwNoted()
    let entity = try container.resolve(snapshot.identifier)
    let known = registered(snapshot.identifier)
    if known == nil { try replaceRelatives(of: snapshot.identifier, entity) }
    let object = known ?? register(snapshot.identifier, entity)
    let model = try cast(object, as: Model.self)
    guard !object.isDeleted else { throw .notFound(snapshot.identifier) }
    let row = try (object.entity ?? entity).row(of: snapshot)
    let (before, references) = (object.stored, object.references)
    let (changes, bases) = (object.changes, object.bases)
    object.take(row)
    do {
      for name in snapshot.changed.sorted() {
        try object.setValue(snapshot[name], forKey: name)
      }
    } catch {
      object.stored = before
      object.changes = changes
      object.bases = bases
      object.references = references
      track(object, changes.isEmpty ? nil : .update)
      throw error
    }
    return model
  }
}

extension ModelEntity {
  fileprivate func row<Model>(of snapshot: ModelSnapshot<Model>) throws(BatchError) -> [SQLValue] {
    try columns.map { column throws(BatchError) in
      if let value = snapshot.row[column] { return value }
      throw BatchError(
        .invalidMapping,
        "the snapshot has no column \(column.quotedForMessage)",
        at: snapshot.identifier.description,
        remedy: "take it from a container with the same classes"
      )
    }
  }
}
