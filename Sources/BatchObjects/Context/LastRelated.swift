import BatchIdentifiers
import BatchSQLite

/// The last value set for a to-many relationship of an object in a context.
///
/// There is a single list, for the last object and relationship: objects that are added one by one
/// are appended to it.
struct LastRelated {
  let object: ManagedObject
  let relationship: Relationship
  let list: RelatedList

  func isKept(in column: Int, of entity: ModelEntity) -> Bool {
    guard case .inverse(let slot) = relationship.storage else { return false }
    let own = relationship.destination
    return own.store == entity.store && own.entity.table == entity.entity.table
      && own.columns[slot] == entity.columns[column]
  }

  var isKeptInPairs: Bool {
    if case .table = relationship.storage { true } else { false }
  }
}

extension ManagedObject {
  /// The objects of a to-many relationship, if they are the value that was set last.
  final func lastRelatedList<Model: ManagedObject>(forKey name: String) -> [Model]? {
    modelContext?.checkQueue()
    return (lastRelated(by: name) as? RelatedListOf<Model>)?.read()
  }

  final func setRelatedList<Model: ManagedObject>(
    _ objects: [Model],
    forKey name: String
  ) throws(BatchError) {
    modelContext?.checkQueue()
    guard let list = lastRelated(by: name) as? RelatedListOf<Model>,
      let new = list.excess(of: objects)
    else {
      try setRelatedObjects(objects, forKey: name)
      noteRelated(objects, by: name)
      return
    }
    // The context forgets the list when further objects are related.
    let last = modelContext?.lastRelated
    for object in new { try addRelatedObject(object, forKey: name) }
    // Deleted objects have no relationships.
    guard new.allSatisfy({ !$0.isDeleted }) else { return }
    list.extend(to: objects, by: new)
    if isNew { draft.lastRelated = list } else { modelContext?.lastRelated = last }
  }

  /// The last value of a to-many relationship; nil if it may have changed, or if another one was
  /// set since.
  private final func lastRelated(by name: String) -> RelatedList? {
    if let context = modelContext {
      guard let last = context.lastRelated, last.object === self else { return nil }
      return last.list.name == name ? last.list : nil
    }
    return draft.lastRelated?.name == name ? draft.lastRelated : nil
  }

  private final func noteRelated<Model: ManagedObject>(_ objects: [Model], by name: String) {
    guard let context = modelContext else {
      if isNew { draft.lastRelated = RelatedListOf(name, objects) }
      return
    }
    guard context.undecidedDeletions.isEmpty,
      objects.allSatisfy({ $0.modelContext === context && !$0.isDeleted }),
      let relationship = try? context.relationship(name, of: self), relationship.isToMany,
      let list = RelatedListOf(name, objects)
    else { return }
    context.lastRelated = LastRelated(object: self, relationship: relationship, list: list)
  }
}
