import BatchIdentifiers
import BatchStore

/// Which unsaved objects refer to which others by what was set on them.
///
/// It is made when it is asked for, and again once something was set in the meantime.
struct UnsavedReferences {
  private enum Target: Hashable {
    case key(SQLValue)
    /// A new object, which has no key yet.
    case object(ObjectIdentifier)
  }

  private struct Place: Hashable {
    let table: String
    let slot: Int
    let target: Target
  }

  private var referrers: [Place: [ManagedObject]] = [:]

  /// - Complexity: O(*n* log *n*) in the number of unsaved objects.
  init(_ unsaved: UnsavedModels, _ relationships: [RelationshipGraph]) {
    for object in unsaved.all() {
      guard let entity = object.entity else { continue }
      for slot in relationships[entity.store].referringSlots(of: entity) {
        let target: Target
        if let reference = object.references[slot] {
          target = .object(ObjectIdentifier(reference))
        } else if let value = object.changes[slot] {
          target = .key(value)
        } else {
          continue
        }
        let place = Place(table: entity.entity.table, slot: slot, target: target)
        referrers[place, default: []].append(object)
      }
    }
  }

  /// The objects of a table that refer to another one, in the order in which they were changed.
  func referrers(to object: ManagedObject, from table: String, at slot: Int) -> [ManagedObject] {
    var place = Place(table: table, slot: slot, target: .object(ObjectIdentifier(object)))
    var found = referrers[place] ?? []
    if let key = object.persistentModelID.key?.components.first {
      place = Place(table: table, slot: slot, target: .key(SQLValue(key)))
      found += referrers[place] ?? []
    }
    return found.filter { $0.refers(to: object, at: slot) }
  }
}
