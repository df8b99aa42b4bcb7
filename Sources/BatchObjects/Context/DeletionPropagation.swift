import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// Applies delete rules to the objects related to deleted ones.
///
/// It marks objects of a context, and can revert this: a failed save leaves no marks.
struct DeletionPropagation {
  private struct Mark {
    let object: ManagedObject
    let unsaved: ManagedObject.Unsaved?
    let changes: SlotValues<SQLValue>
    let bases: SlotValues<SQLValue>
    let references: SlotValues<ManagedObject>
  }

  struct Consequence {
    let object: ManagedObject
    let relationship: Relationship
    /// The column that no longer refers to the deleted object; nil if the related object was
    /// deleted.
    let slot: Int?
  }

  private let context: ModelContext
  private var marks: [Mark] = []
  /// By the object whose deletion caused them.
  private(set) var consequences: [ObjectIdentifier: [Consequence]] = [:]
  private(set) var partings: [(table: JoinTable, identifier: PersistentIdentifier)] = []
  /// The relationships that forbid a deletion as long as objects are related.
  private var denials: [(object: ManagedObject, relationship: Relationship)] = []

  init(_ context: ModelContext) {
    self.context = context
  }

  /// Applies the rules in a save until nothing changes any more; throws `deleteDenied` if a rule
  /// forbids a deletion.
  ///
  /// Call it while no other connection can write to the store.
  mutating func propagate(inStore store: Int) throws(BatchError) {
    // The current state of the store counts, not an earlier one.
    context.generation += 1
    try propagate(from: context.unsaved.all(.delete).filter { $0.entity?.store == store })
    for (object, relationship) in denials {
      let left = try related(to: object, by: relationship)
      if let first = left.first {
        throw BatchError(
          .deleteDenied,
          "the object cannot be deleted: \(left.count.grouped) objects are its"
            + " \(relationship.name.quotedForMessage), such as \(first.persistentModelID)",
          at: object.persistentModelID.description,
          remedy: "delete those too, or relate them to something else"
        )
      }
    }
  }

  mutating func propagate(from objects: [ManagedObject]) throws(BatchError) {
    var deleted = objects
    var next = 0
    // The number of objects whose members were read, and references that keep these members alive.
    var read = 0
    var members: [ManagedObject] = []
    while next < deleted.count {
      if next == read {
        members = try readMembers(of: deleted[next...])
        read = deleted.count
      }
      let object = deleted[next]
      next += 1
      guard let entity = object.entity else { continue }
      for relationship in context.container.relationships[entity.store].all(of: entity) {
        if case .table(let table) = relationship.storage {
          partings.append((table, object.persistentModelID))
        }
        switch (relationship.deleteRule, relationship.storage) {
        case (.noAction, _), (.nullify, .column), (.nullify, .table): continue
        case (.deny, _):
          denials.append((object, relationship))
        case (.nullify, .inverse(let slot)):
          for other in try context.related(to: object, by: relationship) {
            mark(other)
            try other.set(.null, at: slot)
            note(other, relationship, slot, of: object)
          }
        case (.cascade, _):
          for other in try related(to: object, by: relationship) where other.unsaved != .delete {
            mark(other)
            context.track(other, .delete)
            note(other, relationship, nil, of: object)
            deleted.append(other)
          }
        }
      }
    }
    withExtendedLifetime(members) {}
  }

  private mutating func note(
    _ other: ManagedObject,
    _ relationship: Relationship,
    _ slot: Int?,
    of object: ManagedObject
  ) {
    consequences[ObjectIdentifier(object), default: []].append(
      Consequence(object: other, relationship: relationship, slot: slot)
    )
  }

  fileprivate var deletedNew: [ManagedObject] {
    marks.filter { $0.unsaved == .insert && $0.object.unsaved == .delete }.map(\.object)
  }

  /// Reads everything that the rules of some deleted objects need, with one statement per
  /// relationship.
  ///
  /// Returns the objects read, which must be kept alive while they are checked.
  private func readMembers(
    of objects: ArraySlice<ManagedObject>
  ) throws(BatchError) -> [ManagedObject] {
    try context.readMembers(of: objects) { relationship in
      switch (relationship.deleteRule, relationship.storage) {
      case (.noAction, _), (_, .column), (.nullify, .table): false
      case (.nullify, .inverse), (.deny, _), (.cascade, _): true
      }
    }
  }

  /// The objects related to one that will be deleted; empty if its row is needed for this but
  /// already deleted by others.
  private func related(
    to object: ManagedObject,
    by relationship: Relationship
  ) throws(BatchError) -> [ManagedObject] {
    do {
      return try context.related(to: object, by: relationship)
    } catch {
      guard error.code == .objectNotFound, object.row == nil else { throw error }
      return []
    }
  }

  func undo() {
    for mark in marks.reversed() {
      mark.object.changes = mark.changes
      mark.object.bases = mark.bases
      mark.object.references = mark.references
      context.track(mark.object, mark.unsaved)
    }
    context.forgetReferences()
  }

  private mutating func mark(_ object: ManagedObject) {
    marks.append(
      Mark(
        object: object,
        unsaved: object.unsaved,
        changes: object.changes,
        bases: object.bases,
        references: object.references
      )
    )
  }
}

extension ModelContext {
  /// Applies delete rules to objects related to those deleted since the last call.
  ///
  /// Core Data does this when it processes pending changes. If a rule forbids a deletion, only the
  /// save throws an error.
  func decideDeletions() throws(BatchError) {
    guard !undecidedDeletions.isEmpty else { return }
    let deleted = undecidedDeletions.filter { $0.unsaved == .delete && $0.modelContext === self }
    var propagation = DeletionPropagation(self)
    do throws(BatchError) {
      try propagation.propagate(from: deleted)
    } catch {
      propagation.undo()
      throw error
    }
    undecidedDeletions = []
    consequences.merge(propagation.consequences) { $0 + $1 }
    for object in propagation.deletedNew {
      track(object, .insert)
      forget(object)
    }
  }

  func keep(_ object: ManagedObject) {
    var kept = [object]
    while let next = kept.popLast() {
      if next.unsaved == .delete {
        next.stored = next.stored.asKept
        track(next, next.changes.isEmpty ? nil : .update)
      }
      for consequence in consequences.removeValue(forKey: ObjectIdentifier(next)) ?? [] {
        let other = consequence.object
        if let slot = consequence.slot {
          // It may refer to another object by now.
          guard other.modelContext === self, other.unsaved != .delete,
            other.references[slot] == nil,
            other.changes[slot] ?? other.row?[slot] ?? .null == .null
          else { continue }
        } else if !other.isNew {
          if other.modelContext === self, other.unsaved == .delete { kept.append(other) }
          continue
        }
        if other.isNew { kept.append(other) }
        do throws(BatchError) {
          try set(other, isRelated: true, to: next, by: consequence.relationship)
        } catch {
          noteChange(error)
        }
      }
    }
  }

  /// Forgets earlier effects, since no deletions are left.
  func forgetDeletions() {
    undecidedDeletions = []
    consequences = [:]
  }
}
