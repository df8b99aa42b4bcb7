import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension FetchDescriptor {
  /// Makes a query for rows of the entity from the descriptor.
  ///
  /// - Parameters:
  ///   - entity: The entity of the class.
  ///   - container: The container that has the entity.
  ///   - excluded: Objects that are found in some other way.
  ///   - unsaved: Unsaved changes of related objects, if these count.
  ///   - looksUpIdentifiers: Whether identifiers in the predicate find rows, rather than only test
  ///     rows that are found in some other way.
  /// - Returns: The query, which has not run.
  /// - Throws: `BatchError` with code `unsupportedPredicate` for a predicate that SQL cannot
  ///   express, `invalidSQL` for a negative limit or offset.
  func query(
    of entity: ModelEntity,
    in container: ModelContainer,
    excluding excluded: [PersistentIdentifier] = [],
    counting unsaved: UnsavedRelated? = nil,
    looksUpIdentifiers: Bool = true
  ) throws(BatchError) -> IdentifierQuery {
    try query(
      of: entity,
      excluding: excluded,
      with: PredicateTranslator(
        container,
        looksUpIdentifiers: looksUpIdentifiers,
        unsaved: unsaved
      )
    )
  }

  /// Uses a translator that may have translated other expressions of the statement.
  func query(
    of entity: ModelEntity,
    excluding excluded: [PersistentIdentifier] = [],
    with translator: PredicateTranslator
  ) throws(BatchError) -> IdentifierQuery {
    let object = try ObjectTerm(row: entity)
    var conditions: [SQLText] = []
    if !includesSubentities, let concrete = entity.concrete {
      let own = concrete.names.filter { $0.value == entity.entity.name }.keys
      let places = own.map { translator.place($0) }.joined(separator: ", ")
      conditions.append(SQLText("(\(object.column(entity.columns[concrete.slot])) IN (\(places)))"))
    }
    if !excluded.isEmpty {
      conditions.append(try translator.identity(of: object, amongElementsOf: excluded).negated)
    }
    if let predicate { conditions.append(try translator.condition(predicate, of: object)) }
    var order: [String] = []
    for term in sortBy { order.append(try term.sql(object, translator)) }
    return try IdentifierQuery(
      entity.entity,
      where: conditions.isEmpty ? nil : .all(conditions),
      orderBy: order,
      limit: fetchLimit,
      offset: fetchOffset ?? 0,
      parameters: translator.parameters,
      readsRelatedRows: translator.readsRelatedRows
    )
  }

  /// A descriptor without an offset, with as many objects as offset and limit together may need.
  var widened: FetchDescriptor {
    guard fetchLimit ?? 0 >= 0, fetchOffset ?? 0 >= 0 else { return self }
    var descriptor = self
    descriptor.fetchOffset = nil
    descriptor.fetchLimit = fetchLimit.map { limit in
      let (sum, overflow) = limit.addingReportingOverflow(fetchOffset ?? 0)
      return overflow ? .max : sum
    }
    return descriptor
  }

  func window<Element>(of all: [Element]) -> [Element] {
    Array(all.dropFirst(fetchOffset ?? 0).prefix(fetchLimit ?? .max))
  }

  func areInOrder(_ first: Model, _ second: Model) -> Bool {
    for term in sortBy {
      if term.precedes(first, second) { return true }
      if term.precedes(second, first) { return false }
    }
    return first.persistentModelID < second.persistentModelID
  }
}

extension PredicateTranslator {
  func condition<Model: PersistentModel>(
    _ predicate: Predicate<Model>,
    of object: ObjectTerm
  ) throws(BatchError) -> SQLText {
    bind(predicate.variable, to: .object(object))
    return try condition(predicate.expression)
  }
}
