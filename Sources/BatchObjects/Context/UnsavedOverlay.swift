import BatchIdentifiers
import BatchSQLite

/// The effect of unsaved changes on a fetch.
///
/// Some rows are excluded, since their stored values do not count, and objects that satisfy the
/// predicate in memory are added.
struct UnsavedOverlay<Model: PersistentModel> {
  let excluded: [PersistentIdentifier]
  /// The objects that satisfy the predicate, in the order of the descriptor.
  let matching: [Model]

  /// Merges these objects with those of rows, which are already sorted.
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
  /// The overlay for a fetch; nil if there are no unsaved changes that could affect it.
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

  /// The objects that satisfy a predicate.
  ///
  /// SQLite evaluates the predicate over a row of the values in memory. So it has the same meaning
  /// as for stored rows, and expressions that would trap in Swift are errors.
  private func objectsInMemory<Model: PersistentModel>(
    _ objects: [ManagedObject],
    satisfying descriptor: FetchDescriptor<Model>,
    _ entity: ModelEntity,
    _ connection: Connection
  ) throws(BatchError) -> [ManagedObject] {
    guard let predicate = descriptor.predicate else { return objects }
    let translator = PredicateTranslator(container, unsaved: unsavedRelated(for: descriptor))
    let table = SQLName.quoted(entity.entity.table)
    // The key has separate columns, which are placeholders for an object without a key.
    let keys = try entity.entity.requireKey().columns.indices.map { "_batch_key\($0)" }
    let term = ObjectTerm(
      entity,
      key: keys.map { "\(table).\($0)" },
      isPresent: .true,
      column: { "\(table).\(SQLName.quoted($0))" }
    )
    let condition = try translator.condition(predicate, of: term)
    let parameters = translator.parameters
    let columns = (entity.columns.map(SQLName.quoted) + keys).enumerated().map { index, column in
      "?\(parameters.count + 1 + index) AS \(column)"
    }
    let statement = try connection.prepare(
      """
      SELECT 1 FROM (SELECT \(columns.joined(separator: ", "))) AS \(table) WHERE \(condition.text)
      """
    )
    try statement.bind(parameters)
    var matching: [ManagedObject] = []
    for object in objects {
      guard let values = try valuesInMemory(of: object, entity) else { continue }
      let row = values + object.keyInMemory(of: keys.count)
      for (index, value) in row.enumerated()
      where parameters.count + index < statement.parameterCount {
        try statement.bind(value, at: parameters.count + 1 + index)
      }
      defer { statement.reset() }
      if try statement.step() { matching.append(object) }
    }
    return matching
  }
}

extension ModelEntity {
  func includes(_ other: ModelEntity) -> Bool {
    other.space == space
      || other.store == store && (concrete?.names.values.contains(other.entity.name) ?? false)
  }
}
