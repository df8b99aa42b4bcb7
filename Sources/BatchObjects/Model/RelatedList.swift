import BatchPlatform

/// The last value set for a to-many relationship.
///
/// `person.pets.append(pet)` reads the relationship, and sets it. If that repeats, the earlier pets
/// cost only a comparison of their addresses, which is necessary: nobody reports how an array
/// changed between reading and setting.
class RelatedList {
  /// The relationship.
  let name: String

  init(_ name: String) { self.name = name }
}

/// A list of objects of one class.
final class RelatedListOf<Model: ManagedObject>: RelatedList {
  private var objects: [Model]
  private var members: Set<ObjectIdentifier>
  /// The objects again, in an array that is given away: it grows in place if nobody else has it.
  private var spare: [Model]?

  /// Nil for an array that has an object twice.
  init?(_ name: String, _ objects: [Model]) {
    self.objects = objects
    members = Set(objects.map(ObjectIdentifier.init))
    guard members.count == objects.count else { return nil }
    super.init(name)
  }

  /// The objects, for whoever reads the relationship.
  func read() -> [Model] {
    defer { spare = nil }
    return spare ?? objects
  }

  /// The elements that an array has after this list's; nil if it does not start with them.
  ///
  /// - Complexity: O(*n*) in the number of objects, of which only the addresses are compared.
  func excess(of array: [Model]) -> ArraySlice<Model>? {
    guard array.count >= objects.count, array.begins(with: objects) else { return nil }
    let new = array[objects.count...]
    let isNew =
      new.allSatisfy { !members.contains(ObjectIdentifier($0)) }
      && (new.count < 2 || Set(new.map(ObjectIdentifier.init)).count == new.count)
    return isNew ? new : nil
  }

  /// Notes that the relationship was set to an array with some more objects.
  func extend(to array: [Model], by new: ArraySlice<Model>) {
    for object in new {
      objects.append(object)
      members.insert(ObjectIdentifier(object))
    }
    spare = array
  }
}

extension Array where Element: ManagedObject {
  /// Whether the array begins with exactly the objects of a shorter one.
  fileprivate func begins(with other: [Element]) -> Bool {
    unsafe withUnsafeBytes { own in
      unsafe other.withUnsafeBytes { other in
        guard let first = own.baseAddress, let second = other.baseAddress else {
          // There is nothing to compare.
          return true
        }
        return unsafe memcmp(first, second, other.count) == 0
      }
    }
  }
}
