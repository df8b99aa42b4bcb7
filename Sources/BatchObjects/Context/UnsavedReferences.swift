import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The unsaved references between objects.
///
/// It is built on demand and then kept up to date. When a column is set again, its old entry
/// remains; so a query also checks the object itself.
struct UnsavedReferences {
  enum Target: Hashable {
    case value(SQLValue)
    /// A new object, which has no key yet.
    case object(ObjectIdentifier)
  }

  private struct Place: Hashable {
    let table: String
    let slot: Int
    let target: Target
  }

  private var referrers: [Place: [ManagedObject]] = [:]
  /// The number of added entries after which rebuilding is cheaper.
  private var capacity = 1_024

  /// Takes O(*n* log *n*) time in the number of unsaved objects.
  init(_ unsaved: UnsavedModels, _ relationships: [RelationshipGraph]) {
    for object in unsaved.all() {
      guard let entity = object.entity else { continue }
      for slot in relationships[entity.store].referringSlots(of: entity) {
        if let reference = object.references[slot] {
          add(object, of: entity, at: slot, .object(ObjectIdentifier(reference)))
        } else if let value = object.changes[slot] {
          add(object, of: entity, at: slot, .value(value))
        }
        capacity += 2
      }
    }
  }

  /// Whether there are so many entries that rebuilding is cheaper.
  var isFull: Bool { capacity < 0 }

  mutating func add(
    _ object: ManagedObject,
    of entity: ModelEntity,
    at slot: Int,
    _ target: Target
  ) {
    guard target != .value(.null) else { return }
    let place = Place(table: entity.entity.table, slot: slot, target: target)
    referrers[place, default: []].append(object)
    capacity -= 1
  }

  /// The objects of a table that refer to another one, in the order in which they were changed.
  func referrers(to object: ManagedObject, from table: String, at slot: Int) -> [ManagedObject] {
    var place = Place(table: table, slot: slot, target: .object(ObjectIdentifier(object)))
    var found = referrers[place] ?? []
    if let key = object.persistentModelID.key?.components.first {
      place = Place(table: table, slot: slot, target: .value(SQLValue(key)))
      found += referrers[place] ?? []
    }
    var last = -1
    let isOrdered = found.allSatisfy { other in
      defer { last = other.unsavedOrder }
      return other.unsavedOrder > last
    }
    if !isOrdered { found.sort { $0.unsavedOrder < $1.unsavedOrder } }
    var referring: [ManagedObject] = []
    referring.reserveCapacity(found.count)
    for other in found
    where other.hasChanges && other !== referring.last && other.isSet(to: object, at: slot) {
      referring.append(other)
    }
    return referring
  }
}

extension ModelContext {
  func noteReference(of object: ManagedObject, at slot: Int, _ target: UnsavedReferences.Target) {
    guard unsavedReferences != nil || lastRelated != nil, let entity = object.entity,
      container.refers(entity, at: slot)
    else { return }
    if lastRelated?.isKept(in: slot, of: entity) ?? false { lastRelated = nil }
    unsavedReferences?.add(object, of: entity, at: slot, target)
    if unsavedReferences?.isFull ?? false { unsavedReferences = nil }
  }

  /// Forgets all references, since they have changed.
  func forgetReferences() {
    unsavedReferences = nil
    lastRelated = nil
  }
}
