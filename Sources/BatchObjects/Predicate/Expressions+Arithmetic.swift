import BatchIdentifiers
import BatchPlatform

extension PredicateExpressions.Arithmetic: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    let operation = op
    translator.notation?.append(name: "\(op)")
    return try translator.map(translator.term(lhs), translator.term(rhs)) { left, right in
      if let result = try left.checked(operation, right) { return result }
      return switch operation {
      case .add: left + right
      case .subtract: left - right
      case .multiply: left * right
      @unknown default: throw BatchError.unsupported("the operator \(operation)")
      }
    }
  }
}

extension PredicateExpressions.UnaryMinus: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.map(translator.term(wrapped)) { value in
      if let result = try Output.zero.checked(.subtract, value) { return result }
      return -value
    }
  }
}

extension PredicateExpressions.IntDivision: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.map(translator.term(lhs), translator.term(rhs)) { left, right in
      try quotient(left, right).quotient
    }
  }
}

extension PredicateExpressions.IntRemainder: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.map(translator.term(lhs), translator.term(rhs)) { left, right in
      try quotient(left, right).remainder
    }
  }
}

extension PredicateExpressions.FloatDivision: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.map(translator.term(lhs), translator.term(rhs)) { $0 / $1 }
  }
}

// If Swift would trap because of integer overflow, the fetch throws an error.

extension Numeric {
  /// The checked result for a fixed-width integer; nil for other numbers.
  fileprivate func checked(
    _ operation: PredicateExpressions.ArithmeticOperator,
    _ other: Self
  ) throws(BatchError) -> Self? {
    guard let integer = self as? any FixedWidthInteger else { return nil }
    return try integer.result(of: operation, with: other) as? Self
  }
}

extension FixedWidthInteger {
  fileprivate func result(
    of operation: PredicateExpressions.ArithmeticOperator,
    with other: Any
  ) throws(BatchError) -> Any {
    guard let other = other as? Self else { return other }
    let (result, overflow) =
      switch operation {
      case .add: addingReportingOverflow(other)
      case .subtract: subtractingReportingOverflow(other)
      case .multiply: multipliedReportingOverflow(by: other)
      @unknown default: throw .unsupported("the operator \(operation)")
      }
    guard !overflow else { throw overflowError(Self.self) }
    return result
  }
}

private func quotient<Integer: BinaryInteger>(
  _ left: Integer,
  _ right: Integer
) throws(BatchError) -> (quotient: Integer, remainder: Integer) {
  guard right != 0 else {
    throw BatchError(.predicateFailed, "a predicate divides by zero")
  }
  // The smallest integer divided by -1 is the only quotient that overflows.
  if Integer.isSigned, left < 0, right == 0 - 1, Integer(exactly: left.magnitude) == nil {
    throw overflowError(Integer.self)
  }
  return left.quotientAndRemainder(dividingBy: right)
}

private func overflowError(_ type: Any.Type) -> BatchError {
  BatchError(.predicateFailed, "a predicate computes more than an \(type) can hold")
}
