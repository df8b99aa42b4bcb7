import BatchIdentifiers
import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension FetchDescriptor {
  /// The descriptor as a query for the rows of an entity, which is that of the class.
  ///
  /// - Parameters:
  ///   - entity: The entity.
  ///   - container: The container that has it.
  ///   - excluded: Objects that are found in some other way.
  ///   - unsaved: What is unsaved of related objects, if it counts.
  ///   - looksUpIdentifiers: Whether identifiers in the predicate find rows, and do not only tell
  ///     those that are found in some other way from others.
  /// - Returns: The query, which has not run.
  /// - Throws: `BatchError` with code `unsupportedPredicate` for what SQL cannot say, `invalidSQL`
  ///   for a negative limit or offset.
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

  /// The descriptor as a query, translated by a translator that may have translated more for it.
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

  /// The first objects, so many that the window is among them whatever comes between.
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

  /// The elements that offset and limit leave of all.
  func window<Element>(of all: [Element]) -> [Element] {
    Array(all.dropFirst(fetchOffset ?? 0).prefix(fetchLimit ?? .max))
  }

  /// Whether one object comes before another.
  func areInOrder(_ first: Model, _ second: Model) -> Bool {
    for term in sortBy {
      if term.precedes(first, second) { return true }
      if term.precedes(second, first) { return false }
    }
    return first.persistentModelID < second.persistentModelID
  }
}

extension PredicateTranslator {
  /// The condition of a predicate on an object.
  func condition<Model: PersistentModel>(
    _ predicate: Predicate<Model>,
    of object: ObjectTerm
  ) throws(BatchError) -> SQLText {
    bind(predicate.variable, to: .object(object))
    return try condition(predicate.expression)
  }
}
