import BatchIdentifiers

struct ModelRegistry {
  private enum Entry {
    case kept(ManagedObject)
    case free(Weak)

    var object: ManagedObject? {
      switch self {
      case .kept(let object): object
      case .free(let entry): entry.object
      }
    }
  }

  private struct Weak {
    weak var object: ManagedObject?
  }

  /// Whether added objects are kept alive.
  ///
  /// The objects of a chunk live as long as its context, and a weak reference makes every other
  /// reference to an object slower.
  var keepsObjects = false
  private var entries: [PersistentIdentifier: Entry] = [:]
  /// The number of entries above which those without an object are dropped.
  ///
  /// It is twice the number that was in use the last time, so that an addition costs amortized
  /// O(1).
  private var limit = 1_024

  subscript(_ identifier: PersistentIdentifier) -> ManagedObject? { entries[identifier]?.object }

  var objects: [ManagedObject] { entries.values.compactMap(\.object) }

  mutating func reserveCapacity(_ count: Int) {
    entries.reserveCapacity(count)
    limit = max(limit, count)
  }

  mutating func add(_ object: ManagedObject, _ identifier: PersistentIdentifier) {
    if entries.count >= limit {
      entries = entries.filter { $0.value.object != nil }
      limit = max(1_024, entries.count * 2)
    }
    entries[identifier] = keepsObjects ? .kept(object) : .free(Weak(object: object))
  }

  /// Removes an object, unless another one has its identifier by now.
  mutating func remove(_ object: ManagedObject) {
    let identifier = object.persistentModelID
    if entries[identifier]?.object === object { entries[identifier] = nil }
  }
}
