import BatchIdentifiers
import BatchStore

/// What the unsaved changes of a context make of a fetch: rows that do not count as they are
/// stored, and objects that satisfy the predicate as they are in memory.
struct UnsavedOverlay<Model: PersistentModel> {
  /// The identifiers of objects that are changed or deleted.
  let excluded: [PersistentIdentifier]
  /// The objects that satisfy the predicate, in the order of the descriptor.
  let matching: [Model]

  /// Puts the objects among those of rows, which are in order.
  func merged(with rows: [Model], by descriptor: FetchDescriptor<Model>) -> [Model] {
    var merged: [Model] = []
    merged.reserveCapacity(rows.count + matching.count)
    var rest = matching[...]
    for row in rows {
      while let next = rest.first, descriptor.areInOrder(next, row) {
        merged.append(next)
        rest.removeFirst()
      }
      merged.append(row)
    }
    return merged + rest
  }
}

extension ModelContext {
  /// The overlay of a fetch; nil if there is nothing unsaved that it could be about.
  func overlay<Model: PersistentModel>(
    for descriptor: FetchDescriptor<Model>,
    of entity: ModelEntity,
    _ connection: Connection
  ) throws(BatchError) -> UnsavedOverlay<Model>? {
    guard descriptor.includePendingChanges else { return nil }
    let objects = unsaved.all().filter { object in
      guard let other = object.entity else { return false }
      return descriptor.includesSubentities ? entity.includes(other) : other.space == entity.space
    }
    if objects.isEmpty { return nil }
    let candidates = objects.filter { !$0.isDeleted }
    let matching = try objectsInMemory(candidates, satisfying: descriptor, entity, connection)
    return UnsavedOverlay(
      excluded: objects.map(\.persistentModelID).filter { !$0.isTemporary },
      matching: try matching.map { object throws(BatchError) in try cast(object, as: Model.self) }
        .sorted(by: descriptor.areInOrder)
    )
  }

  /// Those of some objects that satisfy a predicate.
  ///
  /// SQLite evaluates it over a row of the values in memory, so that it means for them what it means
  /// for rows, and what would stop the process in Swift is an error.
  private func objectsInMemory<Model: PersistentModel>(
    _ objects: [ManagedObject],
    satisfying descriptor: FetchDescriptor<Model>,
    _ entity: ModelEntity,
    _ connection: Connection
  ) throws(BatchError) -> [ManagedObject] {
    guard let predicate = descriptor.predicate else { return objects }
    let translator = PredicateTranslator(container)
    let condition = try translator.condition(predicate, of: ObjectTerm(row: entity))
    let parameters = translator.parameters
    let keys = try entity.entity.requireKey().columns.filter { column in
      !entity.columns.contains { SQLName.equal($0, column) }
    }
    let columns = (entity.columns + keys).enumerated().map { index, column in
      "?\(parameters.count + 1 + index) AS \(SQLName.quoted(column))"
    }
    let statement = try connection.prepare(
      """
      SELECT 1 FROM (SELECT \(columns.joined(separator: ", "))) \
      AS \(SQLName.quoted(entity.entity.table)) WHERE \(condition.text)
      """
    )
    try statement.bind(parameters)
    var matching: [ManagedObject] = []
    for object in objects {
      guard let values = try valuesInMemory(of: object, entity, keys: keys) else { continue }
      for (index, value) in values.enumerated()
      where parameters.count + index < statement.parameterCount {
        try statement.bind(value, at: parameters.count + 1 + index)
      }
      defer { statement.reset() }
      if try statement.step() { matching.append(object) }
    }
    return matching
  }

  /// The values that the properties of an object have, and its key; nil if its row is gone.
  private func valuesInMemory(
    of object: ManagedObject,
    _ entity: ModelEntity,
    keys: [String]
  ) throws(BatchError) -> [SQLValue]? {
    var values: [SQLValue] = []
    do {
      for slot in entity.columns.indices { values.append(try object.value(at: slot, entity)) }
    } catch {
      if error.code == .objectNotFound { return nil }
      throw error
    }
    for (slot, attribute) in entity.declared where !attribute.codec.fits(values[slot]) {
      values[slot] = attribute.codec.storedPlaceholder
    }
    guard !keys.isEmpty else { return values }
    let columns = try entity.entity.requireKey().columns
    let components = object.persistentModelID.key?.components ?? []
    for key in keys {
      let index = columns.firstIndex(of: key) ?? 0
      values.append(index < components.count ? SQLValue(components[index]) : .null)
    }
    return values
  }
}

extension ModelEntity {
  /// Whether objects of another entity are of this one too.
  func includes(_ other: ModelEntity) -> Bool {
    other.space == space
      || other.store == store && (concrete?.names.values.contains(other.entity.name) ?? false)
  }
}
