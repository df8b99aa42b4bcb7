/// The objects of a context that there is something to save of, in the order in which they came.
struct UnsavedModels {
  private var objects: [ObjectIdentifier: ManagedObject] = [:]
  private var nextOrder = 0

  var isEmpty: Bool { objects.isEmpty }

  /// All of them, or those that a save will do one thing with.
  ///
  /// - Complexity: O(*n* log *n*).
  func all(_ kind: ManagedObject.Unsaved? = nil) -> [ManagedObject] {
    objects.values
      .filter { kind == nil || $0.unsaved == kind }
      .sorted { $0.unsavedOrder < $1.unsavedOrder }
  }

  /// Notes what a save will do with an object; nil if nothing.
  mutating func set(_ kind: ManagedObject.Unsaved?, of object: ManagedObject) {
    if kind == nil {
      objects[ObjectIdentifier(object)] = nil
    } else if objects.updateValue(object, forKey: ObjectIdentifier(object)) == nil {
      object.unsavedOrder = nextOrder
      nextOrder += 1
    }
    object.unsaved = kind
  }
}
