import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// An object of a context: a row, read when needed.
///
/// Tables without a class have objects of this class, with values by attribute name. An object
/// belongs to its context and is not `Sendable`: pass its ``persistentModelID`` instead.
///
/// An object does not keep its context alive. Without it, the object has only what it has read:
/// throwing calls throw; unread properties, relationships and setting trap, since no related objects
/// could be taken for an answer. What is set on an object that a reset or a deletion has taken from
/// its context is lost, which traps in debug builds. An object that was never inserted keeps what is
/// set on it.
///
/// A new object related to one in a context enters that context, whichever side was set, with all
/// new objects related to it.
open class ManagedObject {
  /// The pending change of an object for the next save.
  enum Unsaved {
    case insert, update, delete
  }

  /// Identifiers of related objects, as of a state of the context.
  struct Members {
    let generation: Int
    let identifiers: [PersistentIdentifier]
  }

  /// The values set on an object before it is in a context.
  struct Draft {
    /// The values, by attribute.
    var values: [String: SQLValue] = [:]
    /// The related objects, by relationship.
    var related: [String: [ManagedObject]] = [:]
    /// The relationship that was set last, likewise; nil if it may have changed since.
    var lastRelated: RelatedList?
    /// New objects to which this one was related.
    ///
    /// They enter a context with it; until then all of them keep each other alive.
    var referrers: [ManagedObject] = []
    /// The first error of setting, for the context into which it is inserted.
    var error: BatchError?

    /// Whether relating something to this object was attempted.
    func refers(to object: ManagedObject) -> Bool {
      related.values.contains { $0.contains { $0 === object } }
    }
  }

  /// The context, which the object does not keep alive.
  public final var modelContext: ModelContext? { environment?.context }

  /// The context and the entity; nil for an object that was never in a context.
  final var environment: ObjectEnvironment?
  final var identity: PersistentIdentifier?
  /// The known state of the row.
  final var stored = StoredRow.fault
  /// The unsaved values, by column of the entity.
  final var changes = SlotValues<SQLValue>()
  /// The earlier values of those columns, which the save expects to find.
  final var bases = SlotValues<SQLValue>()
  /// The values set on an object in no context.
  final var draft = Draft()
  /// New objects to which columns will refer once those have keys.
  final var references = SlotValues<ManagedObject>()
  /// The last known related objects in the store, by relationship.
  final var members: [String: Members] = [:]
  /// The pending change; nil for none.
  final var unsaved: Unsaved?
  /// The position among the unsaved objects of the context.
  final var unsavedOrder = 0

  /// The row as last read or saved, a value per column of the entity; nil for a fault.
  final var row: [SQLValue]? { stored.values }
  /// Whether the row was found to be gone.
  final var isGone: Bool { stored.isGone }
  /// Whether the object has a usable row: the latest that the context knows of, or one with changes
  /// based on it.
  final var hasCurrentRow: Bool {
    row != nil && !isGone && !(unsaved == nil && stored.isOutdated)
  }

  /// Creates an object in no context.
  public required init() {}

  /// The identity of the object's row; a temporary one for an object without a row.
  public final var persistentModelID: PersistentIdentifier {
    if let identity { return identity }
    let identifier = PersistentIdentifier.temporary(
      entityName: claimedEntityName ?? "\(Self.self)"
    )
    identity = identifier
    return identifier
  }

  final var entity: ModelEntity? { environment?.entity }

  /// The name of the object's entity by its class, or of its former entity.
  final var claimedEntityName: String? {
    (Self.self as? any PersistentModel.Type)?.mapping.entityName ?? entity?.entity.name
  }

  /// Whether the object has not read its row yet.
  public final var isFault: Bool {
    row == nil && modelContext != nil && unsaved != .insert && changes.isEmpty && !isGone
  }

  /// Whether the object is new, and the next save inserts its row.
  public final var isInserted: Bool { unsaved == .insert }

  /// Whether the object has values that the next save writes to its row.
  public final var isUpdated: Bool { unsaved == .update }

  /// Whether the next save deletes the object's row, or the row was found to be gone.
  ///
  /// False again after that save, as in Core Data: the object is then in no context.
  public final var isDeleted: Bool { unsaved == .delete || isGone }

  /// Whether the object has unsaved changes.
  public final var hasChanges: Bool { unsaved != nil }

  // MARK: Hooks

  /// Called once per save that will insert, update or delete the object, before validation and
  /// writing; does nothing by default.
  ///
  /// Values that it sets, on any object, are part of the save. Objects that change because of it
  /// get the call too, but none gets it twice, unlike in Core Data.
  open func willSave() {}

  /// Called after the commit of a save that inserted, updated or deleted the object; does nothing
  /// by default.
  ///
  /// Values that it sets are unsaved until the next save. A run by objects does not call it: a
  /// chunk's objects are gone when it commits.
  open func didSave() {}

  /// Called when the object is marked for deletion, by ``ModelContext/delete(_:)`` or by a delete
  /// rule; does nothing by default.
  ///
  /// It may change and delete other objects. A save applies delete rules, so if it fails and is
  /// repeated, objects that they delete get the call again.
  open func willDelete() {}

  /// Called before a save inserts or updates the object; accepts everything by default.
  ///
  ///     override func validate() throws {
  ///       var problems = ModelValidationError()
  ///       if total < 0 { problems.add(\Order.total, "must not be negative") }
  ///       if note.isEmpty { problems.add(\Order.note, "must say something") }
  ///       try problems.throwIfAny()
  ///     }
  ///
  /// The save throws `BatchError` with code `validationFailed` for all invalid objects, and writes
  /// nothing.
  ///
  /// - Throws: A ``ModelValidationError``, or any error that says what is wrong.
  open func validate() throws {}

  /// Whether the object has no row, and was not inserted in a context either.
  final var isNew: Bool {
    modelContext == nil && unsaved == nil && (identity?.isTemporary ?? true)
  }

  /// Whether the object's context is gone, without having released the object.
  final var hasOutlivedContext: Bool {
    guard let environment else { return false }
    return environment.context == nil && !environment.isDetached
  }
}

extension ManagedObject {
  /// The context.
  ///
  /// - Throws: `BatchError` with code `noContext` if there is none.
  final func requireContext() throws(BatchError) -> ModelContext {
    if let modelContext { return modelContext }
    throw BatchError(
      .noContext,
      "the object is in no context",
      at: persistentModelID.description,
      remedy: "keep the context, and get objects from it again after a reset or a deletion"
    )
  }

  /// The row, read if necessary.
  final func requireRow(_ context: ModelContext) throws(BatchError) -> [SQLValue] {
    if row == nil { try context.load(self) }
    guard let row, !isDeleted else { throw .notFound(persistentModelID) }
    return row
  }
}

@available(*, unavailable, message: "send persistentModelID instead")
extension ManagedObject: Sendable {}

extension ManagedObject: Hashable, Identifiable {
  /// Whether two references are to one object.
  public static func == (left: ManagedObject, right: ManagedObject) -> Bool { left === right }

  /// Hashes the object's identity in memory.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}

extension BatchError.Code {
  /// An object has no context, or its context is gone or was reset.
  public static let noContext = Self(rawValue: "noContext")
}
