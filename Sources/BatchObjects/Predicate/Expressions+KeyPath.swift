import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension PredicateExpressions.KeyPath: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    let path: Swift.KeyPath<Root.Output, Output> = keyPath
    switch try translator.term(root) {
    case .object(let object): return try object.term(of: path, in: translator)
    case .objects(let objects):
      if kind == .collectionCount, let count = try translator.count(of: objects) as? Term<Output> {
        return count
      }
      if kind == .collectionIsEmpty {
        let exists = try translator.exists(in: objects) { _ in .true }
        if let isEmpty = Term<Bool>.condition(exists.negated) as? Term<Output> { return isEmpty }
      }
      throw .unsupported("a property of a to-many relationship")
    case .identifier: throw .unsupported("a part of an identifier")
    case let root: return try translator.map(root) { $0[keyPath: path] }
    }
  }
}

extension ObjectTerm {
  func term<Root, Value>(
    of property: KeyPath<Root, Value>,
    in translator: PredicateTranslator
  ) throws(BatchError) -> Term<Value> {
    guard let mapping = (entity.type as? any PersistentModel.Type)?.mapping else {
      throw .unsupported("an object without a class")
    }
    if mapping.identifierPaths.contains(property) {
      translator.notation?.append(name: "persistentModelID")
      return .identifier(self)
    }
    if let relationship = mapping.attributes.relationship(property) {
      translator.notation?.append(name: relationship.name)
      return try translator.term(of: relationship.name, of: self)
    }
    guard let attribute = mapping.attributes[property] else {
      throw BatchError(
        .unsupportedPredicate,
        "\(mapping.type).mapping registers no property for \(property.nameForMessage)",
        remedy: "add the property, one of a superclass as .inherited(name, \\.property),"
          + " and ask for persistentModelID rather than id"
      )
    }
    translator.notation?.append(name: attribute.name)
    guard let codec = attribute.codec as? AttributeCodec<Value> else {
      throw .unsupported("attribute \(attribute.name.quotedForMessage) as a \(Value.self)")
    }
    let column = SQLText(column(attribute.column))
    if codec.form == .unixSeconds {
      // The same subtraction as in `Date`.
      let seconds = SQLText(column.text, less: Date.timeIntervalBetween1970AndReferenceDate)
      if let canonical = Representation<Value>.canonical { return .sql(seconds, canonical) }
    }
    return .sql(column, Representation(codec))
  }
}
