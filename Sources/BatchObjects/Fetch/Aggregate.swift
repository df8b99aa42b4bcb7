import BatchRuns
public import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

/// A column of an ``AggregateQuery``: a value to group rows by, or to compute for each group.
///
/// `.group(by: \.state)`, `.count()`, `.sum(\.price)`, `.average(\.price)`, `.min(\.created)`,
/// `.max(\.created)`. For the average of a `Decimal`, divide its sum by the count.
public struct Aggregate<Model: PersistentModel, Value>: Sendable {
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

struct AggregateColumn<Value> {
  let text: String
  /// The expression to group by, if rows are grouped.
  var key: String?
  /// The order of groups; nil if SQLite cannot sort them as Swift does.
  var order: String?
  /// Decodes the result; nil if the type cannot represent it.
  let decode: (SQLValue) throws(BatchError) -> Value?

  func value(_ stored: SQLValue) throws(BatchError) -> Value {
    if let value = try decode(stored) { return value }
    throw .beyond(Value.self)
  }
}

extension BatchError {
  static func beyond(_ type: Any.Type) -> BatchError {
    BatchError(.predicateFailed, "a query computes what is no \(type), or more than one can hold")
  }
}

// MARK: Keys

extension Aggregate {
  /// Makes one group per value of an attribute.
  public static func group(by property: any KeyPath<Model, Value> & Sendable) -> Aggregate
  where Value: SendableMetatype {
    Aggregate(isKey: true) { object, translator throws(BatchError) in
      try .key(object.attribute(property), in: translator)
    }
  }

  /// Makes one group per value of an attribute of a related object; nil if there is no object.
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

  /// Makes one group per related object; nil if there is no object.
  public static func group<Related: PersistentModel>(
    byIdentifierOf relationship: any KeyPath<Model, Related?> & Sendable
  ) -> Aggregate where Value == PersistentIdentifier? {
    Aggregate(isKey: true) { object, translator throws(BatchError) in
      guard case .object(let related) = try object.term(of: relationship, in: translator) else {
        throw .unsupported("a group by something other than a to-one relationship")
      }
      // The key as stored in the row of the other object, since identifiers contain that.
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
  /// Counts the rows.
  public static func count() -> Aggregate {
    Aggregate { _, _ in .number("count(*)") }
  }

  /// Counts the rows with a value that is not nil.
  public static func count<Attribute: SendableMetatype>(
    _ property: any KeyPath<Model, Attribute?> & Sendable
  ) -> Aggregate {
    Aggregate { object, _ throws(BatchError) in
      .number("count(\(try object.attribute(property).column))")
    }
  }

  /// Counts the distinct values that are not nil.
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
  /// Adds integers; the sum of none is 0, and a sum that overflows the type is an error.
  public static func sum(_ property: any KeyPath<Model, Value> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .sum(try object.attribute(property).checked(by: translator))
    }
  }

  /// Adds the integers that are not nil.
  public static func sum(_ property: any KeyPath<Model, Value?> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .sum(try object.attribute(property).checked(by: translator))
    }
  }
}

extension Aggregate where Value: BinaryFloatingPoint & AttributeValue {
  /// Adds numbers in the order in which SQLite reads them; the sum of none is 0.
  public static func sum(_ property: any KeyPath<Model, Value> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .total(try object.attribute(property).checked(by: translator))
    }
  }

  /// Adds the numbers that are not nil.
  public static func sum(_ property: any KeyPath<Model, Value?> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .total(try object.attribute(property).checked(by: translator))
    }
  }
}

extension Aggregate where Value == Decimal {
  /// Adds numbers, rounding beyond 38 digits as Swift does; the sum of none is 0.
  ///
  /// - Complexity: Memory for all values of a group.
  public static func sum(_ property: any KeyPath<Model, Decimal> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .sum(try object.attribute(property), translator)
    }
  }

  /// Adds the numbers that are not nil.
  ///
  /// - Complexity: Memory for all values of a group.
  public static func sum(_ property: any KeyPath<Model, Decimal?> & Sendable) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .sum(try object.attribute(property), translator)
    }
  }
}

extension Aggregate where Value == Double? {
  /// Computes the average of numbers; the average of none is nil.
  public static func average<Number: Numeric & AttributeValue>(
    _ property: any KeyPath<Model, Number> & Sendable
  ) -> Aggregate {
    Aggregate { object, translator throws(BatchError) in
      .average(try object.attribute(property).numbers(by: translator))
    }
  }

  /// Computes the average of the numbers that are not nil; the average of none is nil.
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
  /// Finds the smallest value; nil if there are no values.
  public static func min<Attribute: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Attribute> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate { object, translator throws(BatchError) in
      try .extreme("min", object.attribute(property).optional, translator)
    }
  }

  /// Finds the smallest of the values that are not nil; nil if there are none.
  public static func min<Attribute: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Attribute?> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate { object, translator throws(BatchError) in
      try .extreme("min", object.attribute(property), translator)
    }
  }

  /// Finds the greatest value; nil if there are no values.
  public static func max<Attribute: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Attribute> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate { object, translator throws(BatchError) in
      try .extreme("max", object.attribute(property).optional, translator)
    }
  }

  /// Finds the greatest of the values that are not nil; nil if there are none.
  public static func max<Attribute: Comparable & SendableMetatype>(
    _ property: any KeyPath<Model, Attribute?> & Sendable
  ) -> Aggregate where Value == Attribute? {
    Aggregate { object, translator throws(BatchError) in
      try .extreme("max", object.attribute(property), translator)
    }
  }
}
