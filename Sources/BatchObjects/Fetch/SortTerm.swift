import BatchIdentifiers
import BatchSQLite

/// One term of a sort order: a property and a direction.
///
/// Values sort as in Swift: strings by `<`, which is the same in all languages, and nil first.
/// (Foundation's `SortDescriptor` would sort strings by the language of the process, which SQLite
/// does not know.)
public struct SortTerm<Model: PersistentModel>: Sendable {
  /// The property.
  public let property: any PartialKeyPath<Model> & Sendable
  /// Whether the greatest value comes first.
  public let isDescending: Bool
  /// Whether the first of two objects sorts before the second by this term alone; nil is an object
  /// without a value.
  let precedes: @Sendable (Model?, Model?) -> Bool
  let sql: @Sendable (ObjectTerm, PredicateTranslator) throws(BatchError) -> String

  /// Sorts by a property, smallest value first.
  public static func forward<Value: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Value> & Sendable
  ) -> SortTerm {
    SortTerm(property, { $0 }, isDescending: false)
  }

  /// Sorts by a property, nil first, then the smallest value.
  public static func forward<Value: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Value?> & Sendable
  ) -> SortTerm {
    SortTerm(property, { $0 }, isDescending: false)
  }

  /// Sorts by a property, greatest value first.
  public static func reverse<Value: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Value> & Sendable
  ) -> SortTerm {
    SortTerm(property, { $0 }, isDescending: true)
  }

  /// Sorts by a property, greatest value first, nil last.
  public static func reverse<Value: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Value?> & Sendable
  ) -> SortTerm {
    SortTerm(property, { $0 }, isDescending: true)
  }

  /// Sorts by a term of a related object; objects without one sort like nil.
  ///
  ///     sortBy: [.related(\.customer, .forward(\.name)), .forward(\.number)]
  ///
  /// Related objects and their values are used as stored; for objects with unsaved changes, as in
  /// memory.
  public static func related<Related: PersistentModel>(
    _ relationship: any KeyPath<Model, Related?> & Sendable,
    _ term: SortTerm<Related>
  ) -> SortTerm {
    SortTerm(
      property: relationship,
      isDescending: term.isDescending,
      precedes: { first, second in
        term.precedes(
          first.flatMap { $0[keyPath: relationship] },
          second.flatMap { $0[keyPath: relationship] }
        )
      },
      sql: { object, translator throws(BatchError) in
        guard case .object(let related) = try object.term(of: relationship, in: translator) else {
          throw .unsupported("an order by something other than a to-one relationship")
        }
        return try term.sql(related, translator)
      }
    )
  }

  private init(
    property: any PartialKeyPath<Model> & Sendable,
    isDescending: Bool,
    precedes: @escaping @Sendable (Model?, Model?) -> Bool,
    sql: @escaping @Sendable (ObjectTerm, PredicateTranslator) throws(BatchError) -> String
  ) {
    self.property = property
    self.isDescending = isDescending
    self.precedes = precedes
    self.sql = sql
  }

  private init<Property, Value: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Property> & Sendable,
    _ value: @escaping @Sendable (Property) -> Value?,
    isDescending: Bool
  ) {
    self.init(
      property: property,
      isDescending: isDescending,
      precedes: { first, second in
        let (first, second) = isDescending ? (second, first) : (first, second)
        guard let second = second.flatMap({ value($0[keyPath: property]) }) else { return false }
        return first.flatMap { value($0[keyPath: property]) }.map { $0 < second } ?? true
      },
      sql: { object, translator throws(BatchError) in
        guard let order = Representation<Property>.canonical?.order, order != .none else {
          throw .unsupported("an order by values of type \(Property.self)")
        }
        let text = try translator.canonical(object.term(of: property, in: translator)).text
        let collation = translator.collation(order, ofBytes: false)
        return "\(text.text)\(collation)\(isDescending ? " DESC" : "")"
      }
    )
  }
}
