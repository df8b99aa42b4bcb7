import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// The limit to rounds in which hooks change further objects, as in Core Data.
  private static let hookLimit = 1_000

  /// Calls the hooks of unsaved objects, and validates the objects.
  ///
  /// - Returns: The objects whose hooks were called; they are called again after the save.
  /// - Throws: `BatchError` with code `validationFailed` for all problems, `endlessHooks`, or an
  ///   error of setting a value in a hook.
  func prepareToSave() throws(BatchError) -> [ManagedObject] {
    try withoutSaving { () throws(BatchError) in
      let told = try tellOfSave()
      try throwNoted()
      try validate(told)
      return told
    }
  }

  /// Calls `willSave` of unsaved objects, and of those that become unsaved as a result.
  private func tellOfSave() throws(BatchError) -> [ManagedObject] {
    var additions = unsaved.additions
    var told = unsaved.all()
    for object in told { object.willSave() }
    // Usually no more objects were added, and nothing needs to be remembered.
    guard unsaved.additions > additions else { return told }
    var known = Set(told.map(ObjectIdentifier.init))
    for _ in 0..<Self.hookLimit {
      additions = unsaved.additions
      let next = unsaved.all().filter { known.insert(ObjectIdentifier($0)).inserted }
      for object in next { object.willSave() }
      told += next
      if unsaved.additions == additions { return told.filter(\.hasChanges) }
    }
    throw BatchError(
      .endlessHooks,
      "willSave has changed more objects \(Self.hookLimit) times over, the last of them of"
        + " \(told.last.map { "\(type(of: $0))" } ?? "")",
      remedy: "insert and change objects in willSave only if something is left to do"
    )
  }

  private func validate(_ objects: [ManagedObject]) throws(BatchError) {
    var problems: [SaveProblem] = []
    for object in objects where object.unsaved == .insert || object.unsaved == .update {
      let found = try self.problems(of: object)
      if let unread = takeNotedReading() {
        // The merge policy decides about a change of a deleted row.
        guard unread.code == .objectNotFound, object.unsaved == .update,
          unread.place == object.persistentModelID.description
        else { throw unread }
      } else {
        problems += found
      }
    }
    guard !problems.isEmpty else { return }
    // A caller who corrects these problems also needs to know the others.
    let found = Set(problems.map(\.identifier))
    for store in container.stores.indices where container.stores[store].isWritable {
      let refused = try? refusals(inStore: store, through: writer(to: store))
      problems += refused?.filter { !found.contains($0.identifier) } ?? []
    }
    if let error = BatchError(.validationFailed, problems) { throw error }
  }

  private func problems(of object: ManagedObject) throws(BatchError) -> [SaveProblem] {
    do {
      try object.validate()
      return []
    } catch let error as ModelValidationError {
      return error.problems.map { SaveProblem(object, $0.property, $0.message) }
    } catch let error as BatchError where !error.isAboutObjects {
      throw error
    } catch {
      return [SaveProblem(object, nil, "\(error)")]
    }
  }
}

extension SaveProblem {
  /// Makes a problem that the validation of an object has found.
  fileprivate init(_ object: ManagedObject, _ property: String?, _ reason: String) {
    let value = property.flatMap { name in
      object.entity?.slots[name].flatMap { slot in object.changes[slot] ?? object.row?[slot] }
    }
    identifier = object.persistentModelID
    self.property = property
    self.value = value
    message =
      property.map { name in
        "property \(name.quotedForMessage) \(reason)"
          + (value.map { " (it is \($0.shortForMessage))" } ?? "")
      } ?? reason
    remedy = nil
  }
}
