import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// An object of a context: a row, read when needed.
///
/// Objects of tables without a class are of this class, with values by attribute name. An object
/// belongs to its context and is not `Sendable`: pass on its ``persistentModelID`` instead.
///
/// An object does not keep its context alive. Without the context, it has only the values that it
/// has read. Throwing calls then throw; reading other properties and relationships traps, and so
/// does setting, since an empty result could be mistaken for an answer. Values set on an object
/// that a reset or a deletion has removed from its context are lost, which traps in debug builds.
/// An object that was never inserted keeps the values set on it.
///
/// If a new object is related to one in a context, it enters that context, whichever side was set,
/// with all new objects related to it.
/// new objects related to it.
open class ManagedObject {
  enum Unsaved {
    case insert, update, delete
  }

  struct Members {
    let generation: Int
    let identifiers: [PersistentIdentifier]
  }

  struct Draft {
    var values: [String: SQLValue] = [:]
    var related: [String: [ManagedObject]] = [:]
    /// The last relationship that was set; nil if it may have changed since then.
    var lastRelated: RelatedList?
    /// New objects that this one was related to.
    ///
    /// They enter a context together; until then, they keep each other alive.
    var referrers: [ManagedObject] = []
    /// The first error of setting; the context reports it when the object is inserted.
    var error: BatchError?

    func refers(to object: ManagedObject) -> Bool {
      related.values.contains { $0.contains { $0 === object } }
    }
  }

  /// The context, which the object does not keep alive.
  public final var modelContext: ModelContext? { environment?.context }

  /// Nil for an object that was never in a context.
  final var environment: ObjectEnvironment?
  final var identity: PersistentIdentifier?
  final var stored = StoredRow.fault
  /// The unsaved values by column of the entity.
  final var changes = SlotValues<SQLValue>()
  /// The previous values of these columns, which the save expects to find.
  final var bases = SlotValues<SQLValue>()
  final var draft = Draft()
  /// New objects that columns will refer to, once these have keys.
  final var references = SlotValues<ManagedObject>()
  final var members: [String: Members] = [:]
  final var unsaved: Unsaved?
  /// The position among the unsaved objects of the context.
  final var unsavedOrder = 0

  /// The row as last read or saved, with a value per column; nil for a fault.
  final var row: [SQLValue]? { stored.values }
  /// Whether the row turned out to be gone.
  final var isGone: Bool { stored.isGone }
  /// Whether the row is the latest that the context knows, or has changes based on that.
  final var hasCurrentRow: Bool {
    row != nil && !isGone && !(unsaved == nil && stored.isOutdated)
  }

  /// Creates an object without a context.
  public required init() {}

  /// The identity of the object's row; temporary for an object without a row.
  public final var persistentModelID: PersistentIdentifier {
    if let identity { return identity }
    let identifier = PersistentIdentifier.temporary(
      entityName: claimedEntityName ?? "\(Self.self)"
    )
    identity = identifier
    return identifier
  }

  final var entity: ModelEntity? { environment?.entity }

  /// The name of the entity of the object's class, or of its former entity.
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

  /// Whether the next save deletes the object's row, or the row turned out to be gone.
  ///
  /// After that save it is false again, as in Core Data: the object is then not in a context.
  public final var isDeleted: Bool { unsaved == .delete || isGone }

  /// Whether the object has unsaved changes.
  public final var hasChanges: Bool { unsaved != nil }

  // MARK: Hooks

  /// Called once per save that will insert, update or delete the object; does nothing by default.
  ///
  /// The call precedes validation and writing. Values that it sets, on any object, are part of the
  /// save. Objects that change as a result get the call too, but none gets it twice, unlike in Core
  /// Data.
  open func willSave() {}

  /// Called after the commit of a save that has inserted, updated or deleted the object.
  ///
  /// It does nothing by default. Values that it sets are unsaved until the next save. Runs by
  /// objects do not call it: the objects of a chunk are gone when it commits.
  open func didSave() {}

  /// Called when the object is marked for deletion, by ``ModelContext/delete(_:)`` or by a delete
  /// rule.
  ///
  /// It does nothing by default, and may change and delete other objects. Delete rules are applied
  /// by the save: if the save fails and is repeated, the objects that they delete get the call
  /// again.
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

  /// Whether the object has no row, and was not inserted into a context either.
  final var isNew: Bool {
    modelContext == nil && unsaved == nil && (identity?.isTemporary ?? true)
  }

  /// Whether the object's context is gone without having released the object.
  final var hasOutlivedContext: Bool {
    guard let environment else { return false }
    return environment.context == nil && !environment.isDetached
  }
}

extension ManagedObject {
  final func requireContext() throws(BatchError) -> ModelContext {
    if let modelContext { return modelContext }
    throw BatchError(
      .noContext,
      "the object is in no context",
      at: persistentModelID.description,
      remedy: "keep the context, and get objects from it again after a reset or a deletion"
    )
  }

  final func requireRow(_ context: ModelContext) throws(BatchError) -> [SQLValue] {
    if row == nil { try context.load(self) }
    guard let row, !isDeleted else { throw .notFound(persistentModelID) }
    return row
  }
}

@available(*, unavailable, message: "send persistentModelID instead")
extension ManagedObject: Sendable {}

extension ManagedObject: Hashable, Identifiable {
  /// Compares references, not values.
  public static func == (left: ManagedObject, right: ManagedObject) -> Bool { left === right }

  /// Hashes the identity of the object in memory.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}

extension BatchError.Code {
  /// The object has no context, or its context is gone or was reset.
  public static let noContext = Self(rawValue: "noContext")
}
