public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// The values of an object at one moment, which can be sent anywhere and changed there.
///
/// Saving the changes of the snapshot detects changes that others have made to the row in the
/// meantime, as if the object itself had been kept.
///
///     var snapshot = try ModelSnapshot(of: order)
///     snapshot.price = 500                        // anywhere
///     try context.apply(snapshot)                 // in this context or another
///     try context.save()
@dynamicMemberLookup
public struct ModelSnapshot<Model: ManagedObject>: Sendable, Hashable {
  /// The identifier of the object.
  public let identifier: PersistentIdentifier
  /// The attributes with their values, including changed ones.
  public private(set) var values: [String: SQLValue]
  /// The row by column, as the object had read it.
  let row: [String: SQLValue]
  /// The attributes that were changed in the object or in the snapshot.
  private(set) var changed: Set<String>

  /// Takes the values of a saved object, including unsaved changes.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if the object was never saved or its row is
  ///   gone, or an error of `value(forKey:)`.
  public init(of object: Model) throws(BatchError) {
    let committed = try object.committedValues()
    guard let entity = object.entity, let row = object.row, !object.isDeleted else {
      throw .notFound(object.persistentModelID)
    }
    identifier = object.persistentModelID
    self.row = Dictionary(zip(entity.columns, row), uniquingKeysWith: { first, _ in first })
    let changes = object.changedValues.filter { entity.slots[$0.key] != nil }
    values = committed.merging(changes) { $1 }
    changed = Set(changes.keys)
  }

  /// The stored value of an attribute; NULL for a name that the object does not have.
  ///
  /// New values are checked when the snapshot is applied.
  public subscript(_ attribute: String) -> SQLValue {
    get { values[attribute] ?? .null }
    set {
      values[attribute] = newValue
      changed.insert(attribute)
    }
  }
}

extension ModelSnapshot where Model: PersistentModel {
  /// The value of a property that the class's mapping registers as an attribute.
  ///
  /// - Precondition: The mapping registers the property.
  public subscript<Value>(dynamicMember property: KeyPath<Model, Value>) -> Value {
    get {
      let (mapped, codec) = Model.attribute(of: property)
      return codec.decode(self[mapped.name]) ?? codec.placeholder()
    }
    set {
      let (mapped, codec) = Model.attribute(of: property)
      self[mapped.name] = codec.encode(newValue)
    }
  }
}
