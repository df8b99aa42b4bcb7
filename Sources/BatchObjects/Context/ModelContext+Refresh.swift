extension ModelContext {
  /// Turns an object into a fault, which reads its row when it is used.
  ///
  /// It then has values that another context of the container has saved. For other changes,
  /// ``stalenessInterval`` decides between the object's previous row and the stored one. An unsaved
  /// new object stays unchanged. A deleted object remains deleted if `mergeChanges` is true;
  /// otherwise, its deletion is reverted with all its effects.
  ///
  /// - Parameters:
  ///   - object: An object of this context; objects of other contexts stay unchanged.
  ///   - mergeChanges: Whether to keep unsaved values, which then cannot conflict with the new row.
  public func refresh(_ object: ManagedObject, mergeChanges: Bool) {
    checkQueue()
    noticeSaved()
    guard object.modelContext === self, object.unsaved != .insert else { return }
    // A deleted object stays deleted if its changes are kept.
    object.stored = mergeChanges && object.isGone ? .gone(nil) : object.stored.asFault
    object.bases = SlotValues()
    object.members = [:]
    if !mergeChanges {
      if object.unsaved == .delete { keep(object) }
      object.dropChanges()
      track(object, nil)
    }
  }

  /// Turns all objects into faults; unsaved values are kept.
  public func refreshAllObjects() {
    checkQueue()
    noticeSaved()
    for object in registry.objects { refresh(object, mergeChanges: true) }
  }

  func detach(_ object: ManagedObject) {
    if object.unsaved == .insert {
      object.draft.values = object.changedValues.filter { object.entity?.slots[$0.key] != nil }
      object.identity = nil
    }
    object.dropChanges()
    object.environment = object.environment?.detached
    object.stored = .fault
    object.members = [:]
    object.unsaved = nil
  }
}
