import BatchRuns
public import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

/// A column of an ``AggregateQuery``: what to group rows by, or what to compute for a group.
///
/// `.group(by: \.state)`, `.count()`, `.sum(\.price)`, `.average(\.price)`, `.min(\.created)`,
/// `.max(\.created)`. A `Decimal` has no average: divide its sum by the count.
public struct Aggregate<Model: PersistentModel, Value>: Sendable {
  /// Whether rows are grouped by it.
  let isKey: Bool
  let column:
    @Sendable (ObjectTerm, PredicateTranslator) throws(BatchError) -> AggregateColumn<Value>

  init(
    isKey: Bool = false,
    _ column:
      @escaping @Sendable (ObjectTerm, PredicateTranslator) throws(BatchError)
      -> AggregateColumn<Value>
  ) {
    self.isKey = isKey
    self.column = column
  }
}

/// A column of a query as SQL.
struct AggregateColumn<Value> {
  /// What is read.
  let text: String
  /// What rows are grouped by, if they are.
  var key: String?
  /// The order of groups; nil if SQLite cannot sort them as Swift does.
  var order: String?
  /// The result, or nil if the type has none for the value read.
  let decode: (SQLValue) throws(BatchError) -> Value?

  /// The result for the value read.
  func value(_ stored: SQLValue) throws(BatchError) -> Value {
    if let value = try decode(stored) { return value }
    throw .beyond(Value.self)
  }
}

extension BatchError {
  /// The error for a sum that overflows its type.
  static func beyond(_ type: Any.Type) -> BatchError {
    BatchError(.predicateFailed, "a query computes what is no \(type), or more than one can hold")
  }
}

// MARK: Keys

extension Aggregate {
  /// One group per value of an attribute.
  public static func group(by property: any KeyPath<Model, Value> & Sendable) -> Aggregate
  where Value: SendableMetatype {
    Aggregate(isKey: true) { object, translator throws(BatchError) in
      try .key(object.attribute(property), in: translator)
    }
  }

  /// One group per value of a related object's attribute; nil if there is none.
  public static func group<Related: PersistentModel, Attribute: SendableMetatype>(
    by relationship: any KeyPath<Model, Related?> & Sendable,
    _ property: any KeyPath<Related, Attribute> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate(isKey: true) { object, translator throws(BatchError) in
      guard case .object(let related) = try object.term(of: relationship, in: translator) else {
        throw .unsupported("a group by something other than a to-one relationship")
      }
      return try .key(related.attribute(property).optional, in: translator)
    }
  }

  /// One group per related object; nil if there is none.
  public static func group<Related: PersistentModel>(
    byIdentifierOf relationship: any KeyPath<Model, Related?> & Sendable
  ) -> Aggregate where Value == PersistentIdentifier? {
    Aggregate(isKey: true) { object, translator throws(BatchError) in
      guard case .object(let related) = try object.term(of: relationship, in: translator) else {
        throw .unsupported("a group by something other than a to-one relationship")
      }
      // The key as stored in the other object's row, since identifiers consist of that.
      let key = related.column(try related.entity.entity.requireKey().columns[0])
      let space = related.entity.space
      return AggregateColumn(text: key, key: key, order: key) { value in
        value == .null
          ? .some(nil) : space.identifier(.encoded(EncodedKey([KeyComponent(value)])))
      }
    }
  }
}

// MARK: Counts

extension Aggregate where Value == Int {
  /// The number of rows.
  public static func count() -> Aggregate {
    Aggregate { _, _ in .number("count(*)") }
  }

  /// The number of rows with a value.
  public static func count<Attribute: SendableMetatype>(
    _ property: any KeyPath<Model, Attribute?> & Sendable
  ) -> Aggregate {
    Aggregate { object, _ throws(BatchError) in
      .number("count(\(try object.attribute(property).column))")
    }
  }

  /// The number of distinct values, without nil.
  public static func count<Attribute: SendableMetatype>(
    distinct property: any KeyPath<Model, Attribute> & Sendable
  ) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      let key = try AggregateColumn.key(object.attribute(property), in: translator).key
      return .number("count(DISTINCT \(key ?? "NULL"))")
    }
  }
}

// MARK: Sums

extension Aggregate where Value: FixedWidthInteger & AttributeValue {
  /// The sum of integers; 0 of none, and an error if it overflows the type.
  public static func sum(_ property: any KeyPath<Model, Value> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .sum(try object.attribute(property).checked(by: translator))
    }
  }

  /// The sum of the integers that are not nil.
  public static func sum(_ property: any KeyPath<Model, Value?> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .sum(try object.attribute(property).checked(by: translator))
    }
  }
}

extension Aggregate where Value: BinaryFloatingPoint & AttributeValue {
  /// The sum of numbers, in the order in which SQLite finds them; 0 of none.
  public static func sum(_ property: any KeyPath<Model, Value> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .total(try object.attribute(property).checked(by: translator))
    }
  }

  /// The sum of the numbers that are not nil.
  public static func sum(_ property: any KeyPath<Model, Value?> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .total(try object.attribute(property).checked(by: translator))
    }
  }
}

extension Aggregate where Value == Decimal {
  /// The sum of numbers, rounded as Swift does beyond 38 digits; 0 of none.
  ///
  /// - Complexity: Memory for the values of a group.
  public static func sum(_ property: any KeyPath<Model, Decimal> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .sum(try object.attribute(property), translator)
    }
  }

  /// The sum of the numbers that are not nil.
  ///
  /// - Complexity: Memory for the values of a group.
  public static func sum(_ property: any KeyPath<Model, Decimal?> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .sum(try object.attribute(property), translator)
    }
  }
}

extension Aggregate where Value == Double? {
  /// The average of numbers; nil of none.
  public static func average<Number: Numeric & AttributeValue>(
    _ property: any KeyPath<Model, Number> & Sendable
  ) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .average(try object.attribute(property).numbers(by: translator))
    }
  }

  /// The average of the numbers that are not nil; nil of none.
  public static func average<Number: Numeric & AttributeValue>(
    _ property: any KeyPath<Model, Number?> & Sendable
  ) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .average(try object.attribute(property).numbers(by: translator))
    }
  }
}

// MARK: Extremes

extension Aggregate {
  /// The smallest value; nil of none.
  public static func min<Attribute: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Attribute> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate { object, translator throws(BatchError) in
      try .extreme("min", object.attribute(property).optional, translator)
    }
  }

  /// The smallest of the values that are not nil; nil of none.
  public static func min<Attribute: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Attribute?> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate { object, translator throws(BatchError) in
      try .extreme("min", object.attribute(property), translator)
    }
  }

  /// The greatest value; nil of none.
  public static func max<Attribute: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Attribute> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate { object, translator throws(BatchError) in
      try .extreme("max", object.attribute(property).optional, translator)
    }
  }

  /// The greatest of the values that are not nil; nil of none.
  public static func max<Attribute: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Attribute?> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate { object, translator throws(BatchError) in
      try .extreme("max", object.attribute(property), translator)
    }
  }
}
