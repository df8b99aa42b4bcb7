import BatchIdentifiers
import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
    try translator.comparison(of: translator.term(lhs), translator.term(rhs), op)
  }
}

extension PredicateTranslator {
  /// Whether two terms are equal.
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
    guard let order = Representation<Value>.canonical?.order, order != .none else {
      return try map(left, right) { $0 == $1 }
    }
    let (left, right) = (try canonical(left).text, try canonical(right).text)
    let suffix = collation(
      order,
      ofBytes: isEqualToItsBytesOnly(left) || isEqualToItsBytesOnly(right)
    )
    return .condition(
      SQLText("(\(left.text) IS \(right.text)\(suffix))", canFail: left.canFail || right.canFail)
    )
  }

  /// How two terms compare.
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
    let text = "(\(left.text) \(symbol) \(right.text))"
    return .condition(SQLText(text, canFail: left.canFail || right.canFail))
  }

  /// The collation that the equality of two operands, or an order, needs.
  ///
  /// One is always named for texts, for a column may have been declared with another.
  func collation(_ order: SQLOrder, ofBytes comparesBytes: Bool) -> String {
    guard order == .text else { return "" }
    return " COLLATE \(comparesBytes ? "BINARY" : TextCollation.sqlName)"
  }

  /// Whether an operand is a text that is equal to its very bytes only, or NULL, so that bytes can
  /// be compared, as indices do.
  func isEqualToItsBytesOnly(_ operand: SQLText) -> Bool {
    switch value(of: operand) {
    case .text(let text): TextCollation.isEqualToItsBytesOnly(text)
    case .null: true
    default: false
    }
  }
}
