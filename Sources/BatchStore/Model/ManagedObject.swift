public import BatchIdentifiers

/// An object of a context: a row, read when it is needed.
///
/// Objects of tables that no class claims are of this class itself, and are read by the names of
/// their attributes. An object belongs to its context and does not leave it: it is not `Sendable`.
/// What leaves is its ``persistentModelID``.
open class ManagedObject {
  /// The context, which the object does not keep alive.
  public final internal(set) weak var modelContext: ModelContext?
  /// Whether the object's row turned out not to exist, in a context that then takes objects for
  /// deleted.
  public final internal(set) var isDeleted = false

  final var identity: PersistentIdentifier?
  final var entity: ModelEntity?
  /// A value for each column of the entity, as stored; nil for a fault.
  final var row: [SQLValue]?

  /// Makes an object that is in no context.
  public required init() {}

  /// The identity of the object's row; a temporary one for an object that has no row.
  public final var persistentModelID: PersistentIdentifier {
    if let identity { return identity }
    let name = (Self.self as? any PersistentModel.Type)?.mapping.entityName ?? "\(Self.self)"
    let identifier = PersistentIdentifier.temporary(entityName: name)
    identity = identifier
    return identifier
  }

  /// Whether the object has not read its row yet.
  public final var isFault: Bool { row == nil && modelContext != nil && !isDeleted }

  /// The stored value of an attribute; NULL where ``value(forKey:)`` would throw, and then the next
  /// throwing call of the context throws that error.
  public final subscript(_ attribute: String) -> SQLValue {
    do {
      return try value(forKey: attribute)
    } catch {
      modelContext?.note(error)
      return .null
    }
  }

  /// The stored value of an attribute, loaded if the object is a fault.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if the row is gone, `valueMismatch` if it
  ///   does not fit its class, `unknownAttribute` for a name that the entity does not have,
  ///   `noContext` if the object is in no context.
  public final func value(forKey attribute: String) throws(BatchError) -> SQLValue {
    modelContext?.checkQueue()
    if isDeleted { return .null }
    if row == nil { try requireContext().load(self) }
    guard let row, let entity else { return .null }
    if let slot = entity.slots[attribute] { return row[slot] }
    let name = try entity.entity.requireAttribute(named: attribute).name
    return entity.slots[name].map { row[$0] } ?? .null
  }

  private func requireContext() throws(BatchError) -> ModelContext {
    if let modelContext { return modelContext }
    throw BatchError(
      .noContext,
      "the object is in no context",
      at: persistentModelID.description,
      remedy: "keep the context, and take objects from it again after a reset"
    )
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
  /// An object is in no context, or its context is gone or was reset.
  public static let noContext = Self(rawValue: "noContext")
}
