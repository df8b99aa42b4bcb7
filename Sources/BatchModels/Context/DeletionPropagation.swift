import BatchIdentifiers
import BatchStore

/// What delete rules make of the objects that are related to deleted ones.
///
/// It marks objects of a context, and can take that back: a save that fails leaves no marks.
struct DeletionPropagation {
  private struct Mark {
    let object: ManagedObject
    let unsaved: ManagedObject.Unsaved?
    let changes: SlotValues<SQLValue>
    let bases: SlotValues<SQLValue>
    let references: SlotValues<ManagedObject>
  }

  private let context: ModelContext
  private var marks: [Mark] = []
  /// The rows of tables of pairs that go with deleted objects.
  private(set) var partings: [(table: JoinTable, identifier: PersistentIdentifier)] = []

  init(_ context: ModelContext) {
    self.context = context
  }

  /// Deletes or changes what the rules say, until nothing more follows.
  ///
  /// To be called while nobody else can write to the store.
  ///
  /// - Throws: `BatchError` with code `deleteDenied` if a rule forbids a deletion.
  mutating func propagate(inStore store: Int) throws(BatchError) {
    // What the store has now counts, not what it had when it was asked last.
    context.generation += 1
    // What follows only takes references away, so those that there are now are enough.
    let references = UnsavedReferences(context.unsaved, context.container.relationships)
    defer { context.unsavedReferences = nil }
    var deleted = context.unsaved.all(.delete).filter { $0.entity?.store == store }
    var denials: [(object: ManagedObject, relationship: Relationship)] = []
    var next = 0
    // The objects whose members were read, and what keeps those alive.
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
      context.unsavedReferences = references
      for relationship in context.container.relationships[store].of(entity).values {
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
          }
          context.unsavedReferences = references
        case (.cascade, _):
          for other in try related(to: object, by: relationship) where other.unsaved != .delete {
            mark(other)
            context.track(other, .delete)
            deleted.append(other)
          }
          context.unsavedReferences = references
        }
      }
    }
    withExtendedLifetime(members) {}
    for (object, relationship) in denials {
      context.unsavedReferences = references
      let left = try related(to: object, by: relationship)
      if let first = left.first {
        throw BatchError(
          .deleteDenied,
          "the object cannot be deleted: \(left.count) objects are its"
            + " \(relationship.name.quotedForMessage), such as \(first.persistentModelID)",
          at: object.persistentModelID.description,
          remedy: "delete those too, or relate them to something else"
        )
      }
    }
  }

  /// Reads what the rules of some deleted objects look at, in one statement for each relationship.
  ///
  /// - Returns: What was read, to be kept alive until it was looked at.
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

  /// What is related to an object that is to be deleted; nothing if only its row could tell and
  /// somebody else deleted that already.
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

  /// Leaves all objects as they were.
  func undo() {
    for mark in marks.reversed() {
      mark.object.changes = mark.changes
      mark.object.bases = mark.bases
      mark.object.references = mark.references
      context.track(mark.object, mark.unsaved)
    }
    context.unsavedReferences = nil
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
