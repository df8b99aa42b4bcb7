import BatchIdentifiers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What a relationship to many was set to last.
///
/// `person.pets.append(pet)` reads the relationship and sets it. Where that is done again and again,
/// neither looks at each of the pets.
struct LastRelated {
  let object: ManagedObject
  let name: String
  /// The objects, as an array of their own class.
  let objects: Any
}

extension ModelContext {
  /// What is related to an object, if it is what was set last.
  func lastRelated<Model: ManagedObject>(to object: ManagedObject, by name: String) -> [Model]? {
    guard let last = lastRelated, last.object === object, last.name == name else { return nil }
    return last.objects as? [Model]
  }

  /// Notes what is related to an object, now that it was set.
  func noteRelated<Model: ManagedObject>(
    _ objects: [Model],
    to object: ManagedObject,
    by name: String
  ) {
    guard undecidedDeletions.isEmpty,
      Set(objects.map(ObjectIdentifier.init)).count == objects.count,
      objects.allSatisfy({ $0.modelContext === self && !$0.isDeleted }),
      let relationship = try? relationship(name, of: object), relationship.isToMany
    else { return }
    lastRelated = LastRelated(object: object, name: name, objects: objects)
  }

  /// Relates one more object to one whose relationship was set last.
  ///
  /// - Returns: Whether that is all that there is to do.
  /// - Throws: As ``ManagedObject/setRelatedObjects(_:forKey:)`` does.
  /// - Complexity: O(*n*) in the number of objects, of which only the addresses are compared.
  func append<Model: ManagedObject>(
    _ objects: [Model],
    to object: ManagedObject,
    by name: String
  ) throws(BatchError) -> Bool {
    guard let known: [Model] = lastRelated(to: object, by: name), objects.count == known.count + 1,
      let new = objects.last, Self.isPrefix(known, of: objects)
    else { return false }
    checkQueue()
    let relationship = try relationship(name, of: object)
    // One that is there already is looked for by whoever looks at all of them.
    switch relationship.storage {
    case .inverse(let slot) where new.isNew || !new.refers(to: object, at: slot): break
    case .table where new.isNew: break
    case .column, .inverse, .table: return false
    }
    try set(new, isRelated: true, to: object, by: relationship)
    if !new.isDeleted {
      lastRelated = LastRelated(object: object, name: name, objects: objects)
    }
    return true
  }

  /// Whether an array begins with the very objects of another one.
  private static func isPrefix<Model: ManagedObject>(_ known: [Model], of objects: [Model]) -> Bool
  {
    unsafe known.withUnsafeBytes { known in
      unsafe objects.withUnsafeBytes { objects in
        guard let first = known.baseAddress, let second = objects.baseAddress else {
          // There is nothing to compare.
          return true
        }
        return unsafe memcmp(first, second, known.count) == 0
      }
    }
  }
}
