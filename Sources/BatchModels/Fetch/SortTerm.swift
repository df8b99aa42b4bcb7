import BatchIdentifiers
import BatchStore

/// A term of an order of objects: a property, and which of its values come first.
///
/// The order is that of the property's type in Swift, for strings that of `<`, which is the same in
/// all languages; nil comes before all values. (Foundation's `SortDescriptor` would sort strings by
/// the language of the process, which SQLite does not know.)
public struct SortTerm<Model: PersistentModel> {
  /// The property.
  public let property: PartialKeyPath<Model>
  /// Whether the greatest comes first.
  public let isDescending: Bool
  /// Whether the first of two objects comes before the second, by this term alone.
  let precedes: (Model, Model) -> Bool
  /// The SQL by which rows are sorted.
  let sql: (ObjectTerm, PredicateTranslator) throws(BatchError) -> String

  /// The least value first.
  public static func forward<Value: Comparable>(_ property: KeyPath<Model, Value>) -> SortTerm {
    SortTerm(property, { $0 }, isDescending: false)
  }

  /// No value first, and then the least one.
  public static func forward<Value: Comparable>(_ property: KeyPath<Model, Value?>) -> SortTerm {
    SortTerm(property, { $0 }, isDescending: false)
  }

  /// The greatest value first.
  public static func reverse<Value: Comparable>(_ property: KeyPath<Model, Value>) -> SortTerm {
    SortTerm(property, { $0 }, isDescending: true)
  }

  /// The greatest value first, and no value last.
  public static func reverse<Value: Comparable>(_ property: KeyPath<Model, Value?>) -> SortTerm {
    SortTerm(property, { $0 }, isDescending: true)
  }

  private init<Property, Value: Comparable>(
    _ property: KeyPath<Model, Property>,
    _ value: @escaping (Property) -> Value?,
    isDescending: Bool
  ) {
    self.property = property
    self.isDescending = isDescending
    precedes = { first, second in
      let (first, second) = isDescending ? (second, first) : (first, second)
      guard let second = value(second[keyPath: property]) else { return false }
      return value(first[keyPath: property]).map { $0 < second } ?? true
    }
    sql = { object, translator throws(BatchError) in
      guard let order = Representation<Property>.canonical?.order, order != .none else {
        throw .unsupported("an order by values of type \(Property.self)")
      }
      let text = try translator.canonical(object.term(of: property, in: translator)).text
      let collation = translator.collation(order, ofBytes: false)
      return "\(text.text)\(collation)\(isDescending ? " DESC" : "")"
    }
  }
}
