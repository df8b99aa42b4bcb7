import BatchRuns
import BatchIdentifiers
import BatchPlatform
import BatchSQLite

struct AttributeColumn<Value> {
  let name: String
  let column: String
  let codec: AttributeCodec<Value>
  /// The storage classes that need no further check.
  let alwaysFit: StorageClasses

  /// The same column of a row that may be missing.
  var optional: AttributeColumn<Value?> {
    AttributeColumn<Value?>(
      name: name,
      column: column,
      codec: codec.optional,
      alwaysFit: alwaysFit.union(.null)
    )
  }

  /// How values are compared.
  var representation: Representation<Value> {
    Representation<Value>.canonical ?? Representation(codec)
  }

  /// The column in that representation; the SQL fails for a row whose value does not fit.
  func checked(by translator: PredicateTranslator) -> String {
    let call = converted(by: translator)
    guard codec.form == .canonical, !alwaysFit.isEmpty else { return call }
    let classes = alwaysFit.names.map { "'\($0)'" }.joined(separator: ", ")
    return "CASE WHEN typeof(\(column)) IN (\(classes)) THEN \(column) ELSE \(call) END"
  }

  /// Calls Swift to convert the column, so that equal values become the same.
  func converted(by translator: PredicateTranslator) -> String {
    let (name, codec, representation) = (name, codec, representation)
    let function = translator.place { row throws(BatchError) in
      if let value = codec.decode(row[0]), let stored = representation.encode(value) {
        return stored
      }
      throw BatchError(
        .valueMismatch,
        "attribute \(name.quotedForMessage) is declared \(codec.typeName), and a row has"
          + " \(row[0].className)",
        remedy: "correct the row, or declare the attribute with the type of its values"
      )
    }
    return "\(SwiftFunction.sqlName)(\(function), \(column))"
  }

  /// The column as numbers that SQLite can add.
  func numbers(by translator: PredicateTranslator) throws(BatchError) -> String {
    guard representation.order == .native, Value.self != Decimal.self, Value.self != Decimal?.self
    else {
      throw .unsupported(
        "an average of values of type \(Value.self)",
        remedy: "fetch them with fetchProperties, and compute it"
      )
    }
    return checked(by: translator)
  }

  func mismatch(_ value: SQLValue) -> BatchError {
    BatchError(
      .valueMismatch,
      "attribute \(name.quotedForMessage) is declared \(codec.typeName), and a row has"
        + " \(value.className)"
    )
  }
}

extension ObjectTerm {
  func attribute<Root, Value>(
    _ property: KeyPath<Root, Value>
  ) throws(BatchError) -> AttributeColumn<Value> {
    guard let mapping = (entity.type as? any PersistentModel.Type)?.mapping,
      let attribute = mapping.attributes[property],
      let codec = attribute.codec as? AttributeCodec<Value>
    else {
      throw BatchError(
        .unknownAttribute,
        "\(property.nameForMessage) is no attribute",
        at: entity.entity.name
      )
    }
    return AttributeColumn(
      name: attribute.name,
      column: column(attribute.column),
      codec: codec,
      alwaysFit: attribute.alwaysFit
    )
  }
}

extension AggregateColumn {
  /// Groups by equal values, however they are stored.
  static func key(
    _ attribute: AttributeColumn<Value>,
    in translator: PredicateTranslator
  ) throws(BatchError) -> AggregateColumn {
    let representation = attribute.representation
    let isNative = attribute.codec.form == .canonical
    let text = isNative ? attribute.column : attribute.converted(by: translator)
    let collation =
      representation.order == .text ? translator.collation(.text, ofBytes: false) : ""
    return AggregateColumn(
      text: text,
      key: text + collation,
      order: representation.order == .none ? nil : text + collation
    ) { value throws(BatchError) in
      if let value = representation.decode(value) { return value }
      throw attribute.mismatch(value)
    }
  }

  private static func computed(
    _ text: String,
    _ decode: @escaping (SQLValue) -> Value?
  ) -> AggregateColumn {
    AggregateColumn(text: text, order: text) { value in decode(value) }
  }

  static func extreme<Wrapped>(
    _ function: String,
    _ attribute: AttributeColumn<Value>,
    _ translator: PredicateTranslator
  ) throws(BatchError) -> AggregateColumn where Value == Wrapped? {
    let representation = attribute.representation
    guard representation.order != .none else {
      throw .unsupported("the order of values of type \(Wrapped.self)")
    }
    let collation = translator.collation(representation.order, ofBytes: false)
    let text = "\(function)(\(attribute.checked(by: translator))\(collation))"
    return AggregateColumn(text: text, order: text + collation) { value throws(BatchError) in
      if let value = representation.decode(value) { return value }
      throw attribute.mismatch(value)
    }
  }
}

extension AggregateColumn where Value == Int {
  static func number(_ text: String) -> AggregateColumn {
    computed(text) { if case .integer(let value) = $0 { Int(value) } else { nil } }
  }
}

extension AggregateColumn where Value: FixedWidthInteger {
  static func sum(_ values: String) -> AggregateColumn {
    computed("coalesce(sum(\(values)), 0)") {
      if case .integer(let value) = $0 { Value(exactly: value) } else { nil }
    }
  }
}

extension AggregateColumn where Value: BinaryFloatingPoint {
  static func total(_ values: String) -> AggregateColumn {
    computed("total(\(values))") { $0.double.map { Value($0) } }
  }
}

extension AggregateColumn where Value == Decimal {
  /// A sum computed by Swift from the values of a group, which SQLite collects in one text.
  static func sum<Attribute>(
    _ attribute: AttributeColumn<Attribute>,
    _ translator: PredicateTranslator
  ) -> AggregateColumn {
    let representation = Decimal.representation
    let function = translator.place { row throws(BatchError) in
      var sum = Decimal(0)
      for key in (row[0].string ?? "").split(separator: " ") {
        sum += representation.decode(.text(String(key))) ?? .nan
      }
      guard let stored = representation.encode(sum) else { throw .beyond(Decimal.self) }
      return stored
    }
    let values = "group_concat(\(attribute.converted(by: translator)), ' ')"
    return computed("\(SwiftFunction.sqlName)(\(function), \(values))", representation.decode)
  }
}

extension AggregateColumn where Value == Double? {
  static func average(_ values: String) -> AggregateColumn {
    computed("avg(\(values))") { $0 == .null ? .some(nil) : $0.double }
  }
}
