import BatchIdentifiers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension FetchDescriptor {
  /// The descriptor as a query for the rows of an entity, which is that of the class.
  ///
  /// - Throws: `BatchError` with code `unsupportedPredicate` for what SQL cannot say, `invalidSQL`
  ///   for a negative limit or offset.
  func query(
    of entity: ModelEntity,
    in container: ModelContainer
  ) throws(BatchError) -> IdentifierQuery {
    let translator = PredicateTranslator(container)
    let object = try ObjectTerm(row: entity)
    let condition = try predicate.map { predicate throws(BatchError) in
      try translator.condition(predicate, of: object)
    }
    var order: [String] = []
    for term in sortBy { order.append(try term.sql(object, translator)) }
    return try IdentifierQuery(
      entity.entity,
      where: condition,
      orderBy: order,
      limit: fetchLimit,
      offset: fetchOffset ?? 0,
      parameters: translator.parameters
    )
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
