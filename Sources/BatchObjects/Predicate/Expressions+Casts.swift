import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension PredicateExpressions.TypeCheck: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    translator.notation?.append(name: "\(Desired.self)")
    let input = try translator.term(input)
    if case .object(let object) = input {
      return .condition(translator.isObject(object, of: Desired.self))
    }
    return try translator.map(input) { $0 is Desired }
  }
}

extension PredicateExpressions.ConditionalCast: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Desired?> {
    translator.notation?.append(name: "\(Desired.self)")
    let input = try translator.term(input)
    guard case .object(let object) = input else {
      return try translator.map(input) { $0 as? Desired }
    }
    let entities = translator.container.entities[object.entity.store].values
    guard let entity = entities.first(where: { $0.type == Desired.self }) else {
      throw .unsupported("a cast to \(Desired.self), which is not an entity here")
    }
    let isDesired = translator.isObject(object, of: Desired.self)
    return .object(
      ObjectTerm(entity, key: object.key, isPresent: isDesired, column: object.column)
    )
  }
}

extension PredicateExpressions.ForceCast: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Desired> {
    translator.notation?.append(name: "\(Desired.self)")
    return try translator.map(translator.term(input)) { value in
      if let value = value as? Desired { return value }
      throw BatchError(.predicateFailed, "a \(type(of: value)) is no \(Desired.self)")
    }
  }
}

extension PredicateTranslator {
  fileprivate func isObject<Desired>(_ object: ObjectTerm, of type: Desired.Type) -> SQLText {
    let entity = object.entity
    guard let concrete = entity.concrete else {
      return entity.type is Desired.Type ? object.isPresent : .false
    }
    let members = concrete.names.filter { _, name in
      container.entities[entity.store][name]?.type is Desired.Type
    }
    let places = members.keys.map { place($0) }.joined(separator: ", ")
    let column = object.column(entity.columns[concrete.slot])
    return .and(object.isPresent, SQLText("(\(column) IN (\(places)))"))
  }
}
