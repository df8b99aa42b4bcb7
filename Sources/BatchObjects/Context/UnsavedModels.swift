/// The objects of a context with unsaved changes, in the order in which they were added.
struct UnsavedModels {
  /// Nil for objects that were removed since the last compaction.
  private var objects: [ManagedObject?] = []
  private var count = 0
  private(set) var additions = 0

  var isEmpty: Bool { count == 0 }

  func areOnly(_ object: ManagedObject) -> Bool { count == 1 && contains(object) }

  func all(_ kind: ManagedObject.Unsaved? = nil) -> [ManagedObject] {
    objects.compactMap { $0 }.filter { kind == nil || $0.unsaved == kind }
  }

  /// Records the pending change of an object, nil for none; takes amortized O(1) time.
  mutating func set(_ kind: ManagedObject.Unsaved?, of object: ManagedObject) {
    switch (kind, contains(object)) {
    case (nil, true):
      objects[object.unsavedOrder] = nil
      count -= 1
      compactIfSparse()
    case (.some, false):
      object.unsavedOrder = objects.count
      objects.append(object)
      count += 1
      additions += 1
    case (nil, false), (.some, true): break
    }
    object.unsaved = kind
  }

  mutating func arrange(as objects: [ManagedObject]) {
    self.objects = objects
    count = objects.count
    for (index, object) in objects.enumerated() { object.unsavedOrder = index }
  }

  private func contains(_ object: ManagedObject) -> Bool {
    object.unsavedOrder < objects.count && objects[object.unsavedOrder] === object
  }

  private mutating func compactIfSparse() {
    guard objects.count > 2 * count + 16 else { return }
    objects.removeAll { $0 == nil }
    for (index, object) in objects.enumerated() { object?.unsavedOrder = index }
  }
}
