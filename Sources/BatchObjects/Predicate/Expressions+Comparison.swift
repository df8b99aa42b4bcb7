import BatchRuns
import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension PredicateExpressions.Equal: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    try translator.equality(of: translator.term(lhs), translator.term(rhs))
  }
}

extension PredicateExpressions.NotEqual: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    switch try translator.equality(of: translator.term(lhs), translator.term(rhs)) {
    case .constant(let value): .constant(!value)
    case let term: .condition(try translator.canonical(term).text.negated)
    }
  }
}

extension PredicateExpressions.Comparison: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    translator.notation?.append(name: "\(op)")
    return try translator.comparison(of: translator.term(lhs), translator.term(rhs), op)
  }
}

extension PredicateTranslator {
  func equality<Value: Equatable>(
    of left: Term<Value>,
    _ right: Term<Value>
  ) throws(BatchError) -> Term<Bool> {
    switch (left, right) {
    case (.object, _), (_, .object), (.identifier, _), (_, .identifier):
      return .condition(try identity(of: left, right))
    case (.constant(let left), .constant(let right)):
      return .constant(left == right)
    default: break
    }
    if let value = right.constant, let condition = lookUp(left, among: CollectionOfOne(value)) {
      return .condition(condition)
    }
    if let value = left.constant, let condition = lookUp(right, among: CollectionOfOne(value)) {
      return .condition(condition)
    }
    guard let order = Representation<Value>.canonical?.order, order != .none else {
      return try map(left, right) { $0 == $1 }
    }
    let (left, right) = (try canonical(left).text, try canonical(right).text)
    let isOfBytes = value(of: left) == .null || value(of: right) == .null
    let isEqual = SQLText(
      "(\(left.text) IS \(right.text)\(collation(order, ofBytes: isOfBytes)))",
      canFail: left.canFail || right.canFail
    )
    return .condition(.all(near(left, right) + near(right, left) + [isEqual]))
  }

  /// Whether a column has one of the stored values that decode to the given ones, so that an index
  /// can be used.
  ///
  /// It is nil if these values are unknown or too many.
  func lookUp<Value>(_ column: Term<Value>, among values: some Sequence<Value>) -> SQLText? {
    guard case .sql(let text, let representation) = column else { return nil }
    var stored: [SQLValue] = []
    for value in values {
      if stored.count > Self.greatestListCount * 3 { return nil }
      if !representation.isCanonical {
        guard let forms = representation.forms(value) else { return nil }
        for form in forms {
          guard let equal = Self.values(equalTo: form) else { return nil }
          stored += equal
        }
      } else if representation.order != .none, text.difference == nil {
        // A value that SQL cannot express, such as NaN, equals no value.
        guard let form = representation.encode(value) else { continue }
        guard let equal = Self.values(equalTo: form) else { return nil }
        stored += equal
      } else {
        return nil
      }
    }
    return listing(text, stored, isOptional: Value.self is any ExpressibleByNilLiteral.Type)
  }

  /// All stored values equal to a value, which differ in bytes; nil if there are many.
  private static func values(equalTo value: SQLValue) -> [SQLValue]? {
    guard case .text(let text) = value else { return [value] }
    return SwiftCollation.texts(equalTo: text)?.map { .text($0) }
  }

  /// The maximum number of values to list in the statement; longer lists are looked up in Swift.
  static var greatestListCount: Int { 256 }

  private func listing(_ text: SQLText, _ stored: [SQLValue], isOptional: Bool) -> SQLText {
    let values = stored.filter { $0 != .null }
    let places = values.map { place($0) }
    var condition = "(\(text.text) COLLATE BINARY IN (\(places.joined(separator: ", "))))"
    switch values.count {
    case 0:
      return stored.isEmpty ? .false : SQLText("(\(text.text) IS NULL)", canFail: text.canFail)
    case 1: condition = "(\(text.text) IS \(places[0])\(collation(of: values[0])))"
    default: if isOptional { condition = "(\(text.text) IS NOT NULL AND \(condition))" }
    }
    if values.count < stored.count { condition = "(\(text.text) IS NULL OR \(condition))" }
    return SQLText(condition, canFail: text.canFail)
  }

  /// A text column may be declared with another collation.
  private func collation(of value: SQLValue) -> String {
    if case .text = value { " COLLATE BINARY" } else { "" }
  }

  /// What an index can use of a difference compared with a number: the column is near their sum,
  /// within floating-point error.
  private func near(
    _ left: SQLText,
    _ right: SQLText,
    above: Bool = true,
    below: Bool = true
  ) -> [SQLText] {
    guard let difference = left.difference, case .real(let number)? = value(of: right),
      number.isFinite
    else { return [] }
    let sum = number + difference.less
    let margin = 2 * max(number.ulp, sum.ulp, difference.less.ulp)
    var conditions: [SQLText] = []
    if above {
      conditions.append(SQLText("(\(difference.column) >= \(place(.real(sum - margin))))"))
    }
    if below {
      conditions.append(SQLText("(\(difference.column) <= \(place(.real(sum + margin))))"))
    }
    return conditions
  }

  func comparison<Value: Comparable>(
    of left: Term<Value>,
    _ right: Term<Value>,
    _ comparison: PredicateExpressions.ComparisonOperator
  ) throws(BatchError) -> Term<Bool> {
    guard Representation<Value>.canonical?.order == .native,
      left.constant == nil || right.constant == nil
    else {
      return try map(left, right) { left, right in
        switch comparison {
        case .lessThan: left < right
        case .lessThanOrEqual: left <= right
        case .greaterThan: left > right
        case .greaterThanOrEqual: left >= right
        @unknown default:
          throw BatchError.unsupported("the comparison \(comparison)")
        }
      }
    }
    let (left, right) = (try canonical(left).text, try canonical(right).text)
    let symbol =
      switch comparison {
      case .lessThan: "<"
      case .lessThanOrEqual: "<="
      case .greaterThan: ">"
      case .greaterThanOrEqual: ">="
      @unknown default: throw .unsupported("the comparison \(comparison)")
      }
    let text = SQLText(
      "(\(left.text) \(symbol) \(right.text))",
      canFail: left.canFail || right.canFail
    )
    let isBelow = comparison == .lessThan || comparison == .lessThanOrEqual
    return .condition(
      .all(
        near(left, right, above: !isBelow, below: isBelow)
          + near(right, left, above: isBelow, below: !isBelow) + [text]
      )
    )
  }

  /// The collation for the equality of two operands, or for an order.
  ///
  /// Texts always get one, since a column may be declared with another.
  func collation(_ order: SQLOrder, ofBytes comparesBytes: Bool) -> String {
    guard order == .text else { return "" }
    return " COLLATE \(comparesBytes ? "BINARY" : SwiftCollation.sqlName)"
  }
}
