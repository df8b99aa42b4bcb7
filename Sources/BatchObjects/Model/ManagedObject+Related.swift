public import BatchIdentifiers

extension ManagedObject {
  /// Returns the objects related to this one, including unsaved ones.
  ///
  /// Undeclared relationships are named after foreign keys: `customer` for a column `customer_id`,
  /// and on the other side the name of the entity with the column. Stored objects come first, in
  /// key order.
  ///
  /// - Returns: At most one object for a to-one relationship.
  /// - Throws: `BatchError` with code `unknownRelationship`, or an error of ``value(forKey:)``.
  /// - Complexity: At most one statement, which reads all the rows; O(*n*) in the number of unsaved
  ///   objects.
  public final func relatedObjects(forKey name: String) throws(BatchError) -> [ManagedObject] {
    modelContext?.checkQueue()
    if isNew { return draft.related[name] ?? [] }
    let context = try requireContext()
    try context.decideDeletions()
    return try context.related(to: self, by: context.relationship(name, of: self))
  }

  /// Returns the first object related to this one, or nil.
  ///
  /// A stored object is a fault until it is used; its row is not read before.
  ///
  /// - Throws: An error of ``relatedObjects(forKey:)``.
  public final func relatedObject(forKey name: String) throws(BatchError) -> ManagedObject? {
    try relatedObjects(forKey: name).first
  }

  /// Relates exactly these objects to this one, to be saved with the context.
  ///
  /// The other side follows automatically. A new object on either side enters the context of the
  /// other side, with all new objects related to it.
  ///
  /// - Throws: `BatchError` with code `unknownRelationship`; `noContext` for objects of other
  ///   contexts; `modelTypeMismatch` for objects of another entity, or for several objects of a
  ///   to-one relationship; `immutableAttribute` if the column is part of an object's identity.
  public final func setRelatedObjects(
    _ objects: [ManagedObject],
    forKey name: String
  ) throws(BatchError) {
    modelContext?.checkQueue()
    if isNew, try !joinContext(of: objects, by: name) {
      let known = Set((draft.related[name] ?? []).map(ObjectIdentifier.init))
      draft.related[name] = objects
      draft.lastRelated = nil
      for object in objects where !known.contains(ObjectIdentifier(object)) {
        object.draft.referrers.append(self)
      }
      return
    }
    let context = try requireContext()
    try context.relate(self, to: objects, by: context.relationship(name, of: self))
  }

  /// Inserts a new object into the context of the objects to relate; returns false if they are all
  /// new too.
  private func joinContext(
    of objects: [ManagedObject],
    by name: String
  ) throws(BatchError) -> Bool {
    guard let other = objects.first(where: { !$0.isNew }) else { return false }
    let context = try other.requireContext()
    context.checkQueue()
    try context.take(self, relating: objects, by: name)
    return true
  }

  /// Relates one object, or none, to this one.
  ///
  /// - Throws: An error of ``setRelatedObjects(_:forKey:)``.
  public final func setRelatedObject(
    _ object: ManagedObject?,
    forKey name: String
  ) throws(BatchError) {
    try setRelatedObjects(object.map { [$0] } ?? [], forKey: name)
  }

  /// Relates one more object to this one, without reading the others.
  ///
  /// - Throws: An error of ``setRelatedObjects(_:forKey:)``.
  public final func addRelatedObject(
    _ object: ManagedObject,
    forKey name: String
  ) throws(BatchError) {
    modelContext?.checkQueue()
    if isNew, try !joinContext(of: [object], by: name) {
      draft.related[name, default: []].append(object)
      draft.lastRelated = nil
      object.draft.referrers.append(self)
      return
    }
    let context = try requireContext()
    let relationship = try context.relationship(name, of: self)
    guard relationship.isToMany else { return try setRelatedObject(object, forKey: name) }
    try context.set(object, isRelated: true, to: self, by: relationship)
  }

  /// Ends the relationship to one object, without reading the others.
  ///
  /// - Throws: An error of ``setRelatedObjects(_:forKey:)``.
  public final func removeRelatedObject(
    _ object: ManagedObject,
    forKey name: String
  ) throws(BatchError) {
    modelContext?.checkQueue()
    if isNew {
      draft.related[name]?.removeAll { $0 === object }
      draft.lastRelated = nil
      return
    }
    let context = try requireContext()
    try context.set(object, isRelated: false, to: self, by: context.relationship(name, of: self))
  }
}

extension PersistentModel {
  /// The object of a registered to-one relationship, for the accessors of its property.
  ///
  /// Errors are thrown by the context's next throwing call.
  ///
  /// - Precondition: The mapping registers the property.
  public subscript<Destination: ManagedObject>(
    _ property: KeyPath<Self, Destination?>,
    accessor: StaticString = #function
  ) -> Destination? {
    get {
      let objects: [Destination] = related(relationship(of: property, accessor, "toOne"))
      return objects.first
    }
    set {
      let name = relationship(of: property, accessor, "toOne")
      relate(newValue.map { [$0] } ?? []) { objects throws(BatchError) in
        try setRelatedObjects(objects, forKey: name)
      }
    }
  }

  /// The objects of a registered to-many relationship, for the accessors of its property.
  ///
  /// Errors are thrown by the context's next throwing call.
  ///
  /// Appending repeatedly to the relationship of one object only compares the addresses of existing
  /// objects, 8 bytes each. Reading the array in between copies it.
  ///
  /// - Precondition: The mapping registers the property.
  public subscript<Destination: ManagedObject>(
    _ property: KeyPath<Self, [Destination]>,
    accessor: StaticString = #function
  ) -> [Destination] {
    get { related(relationship(of: property, accessor, "toMany")) }
    set {
      let name = relationship(of: property, accessor, "toMany")
      relate(newValue) { objects throws(BatchError) in try setRelatedList(objects, forKey: name) }
    }
  }

  private func relationship(
    of property: AnyKeyPath,
    _ accessor: StaticString,
    _ factory: String
  ) -> String {
    let list = type(of: self).mapping.relationshipList
    guard let name = list.first(where: { $0.keyPath as AnyKeyPath == property })?.name else {
      Self.unregistered(property, accessor, factory)
    }
    return name
  }

  private func related<Destination: ManagedObject>(_ name: String) -> [Destination] {
    if let last: [Destination] = lastRelatedList(forKey: name) { return last }
    do throws(BatchError) {
      return try relatedObjects(forKey: name).compactMap { $0 as? Destination }
    } catch {
      noteReading(error)
      return []
    }
  }

  /// Relates objects to this one, and keeps an error for the context's next throwing call.
  private func relate<Destination: ManagedObject>(
    _ objects: [Destination],
    _ body: ([Destination]) throws(BatchError) -> Void
  ) {
    do throws(BatchError) {
      try body(objects)
    } catch {
      // A new object that cannot enter a context reports the error there.
      let context = isNew ? objects.lazy.compactMap(\.modelContext).first : nil
      if let context { context.noteChange(error) } else { noteChange(error) }
    }
  }
}
