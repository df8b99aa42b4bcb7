import BatchPlatform

/// The last value set for a to-many relationship.
///
/// `person.pets.append(pet)` reads and then sets the relationship. If this is repeated, existing
/// pets only cost a comparison of their addresses, which is necessary: an array does not report how
/// it was changed between reading and setting.
class RelatedList {
  let name: String

  init(_ name: String) { self.name = name }
}

final class RelatedListOf<Model: ManagedObject>: RelatedList {
  private var objects: [Model]
  private var members: Set<ObjectIdentifier>
  /// A second array of the objects to hand out: it grows in place if nothing else refers to it.
  private var spare: [Model]?

  /// Nil for an array that contains an object twice.
  init?(_ name: String, _ objects: [Model]) {
    self.objects = objects
    members = Set(objects.map(ObjectIdentifier.init))
    guard members.count == objects.count else { return nil }
    super.init(name)
  }

  /// The objects for a reader of the relationship.
  func read() -> [Model] {
    defer { spare = nil }
    return spare ?? objects
  }

  /// The elements of an array after those of this list; nil if the array does not begin with these.
  ///
  /// Takes time in proportion to the number of objects, but only compares addresses.
  func excess(of array: [Model]) -> ArraySlice<Model>? {
    guard array.count >= objects.count, array.begins(with: objects) else { return nil }
    let new = array[objects.count...]
    let isNew =
      new.allSatisfy { !members.contains(ObjectIdentifier($0)) }
      && (new.count < 2 || Set(new.map(ObjectIdentifier.init)).count == new.count)
    return isNew ? new : nil
  }

  /// Records that the relationship was set to an array with some more objects.
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
