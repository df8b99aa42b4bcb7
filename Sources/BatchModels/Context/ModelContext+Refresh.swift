extension ModelContext {
  /// Turns an object into a fault, which has its row again when it is used.
  ///
  /// What another context of the container has saved shows then. Otherwise ``stalenessInterval``
  /// says which row that is: the one that the object had, or the one that the store has then. An
  /// object that was not saved yet is left as it is.
  ///
  /// One that is to be deleted stays so where `mergeChanges` is true, and is not to be deleted any more,
  /// with all that its deletion took, where it is false.
  ///
  /// - Parameters:
  ///   - object: An object of this context; one of another is left alone.
  ///   - mergeChanges: Whether values that were set and not saved stay set; they cannot conflict
  ///     then with what the new row has.
  public func refresh(_ object: ManagedObject, mergeChanges: Bool) {
    checkQueue()
    noticeSaved()
    guard object.modelContext === self, object.unsaved != .insert else { return }
    // An object with changes to keep stays deleted, if it is.
    object.stored = mergeChanges && object.isGone ? .gone(nil) : object.stored.asFault
    object.bases = SlotValues()
    object.members = [:]
    if !mergeChanges {
      if object.unsaved == .delete { keep(object) }
      object.dropChanges()
      track(object, nil)
    }
  }

  /// Turns all objects into faults; those with values that were not saved keep them.
  public func refreshAllObjects() {
    checkQueue()
    noticeSaved()
    for object in registry.objects { refresh(object, mergeChanges: true) }
  }

  /// Takes an object out of the context.
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
