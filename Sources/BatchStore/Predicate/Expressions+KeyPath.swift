import BatchIdentifiers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension PredicateExpressions.KeyPath: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    let path: Swift.KeyPath<Root.Output, Output> = keyPath
    switch try translator.term(root) {
    case .object(let object): return try object.term(of: path)
    case .identifier: throw .unsupported("a part of an identifier")
    case let root: return try translator.map(root) { $0[keyPath: path] }
    }
  }
}

extension ObjectTerm {
  /// What a property of the object became.
  func term<Root, Value>(of property: KeyPath<Root, Value>) throws(BatchError) -> Term<Value> {
    guard let mapping = (entity.type as? any PersistentModel.Type)?.mapping else {
      throw .unsupported("an object without a class")
    }
    if mapping.identifierPaths.contains(property) { return .identifier(self) }
    guard let attribute = mapping.attributes[property] else {
      throw BatchError(
        .unsupportedPredicate,
        "\(mapping.type).mapping does not register \(property) of \(Root.self)",
        remedy: "add the property, one of a superclass as .inherited(name, \\.property),"
          + " and ask for persistentModelID rather than id"
      )
    }
    guard let codec = attribute.codec as? AttributeCodec<Value> else {
      throw .unsupported("attribute \(attribute.name.quotedForMessage) as a \(Value.self)")
    }
    let column = SQLText(column(attribute.column))
    if codec.form == .unixSeconds {
      // The one subtraction that `Date` makes too.
      let seconds = SQLText("(\(column.text) - \(Date.timeIntervalBetween1970AndReferenceDate))")
      if let canonical = Representation<Value>.canonical { return .sql(seconds, canonical) }
    }
    return .sql(column, Representation(codec))
  }
}
