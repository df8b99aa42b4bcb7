import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension PredicateExpressions.RangeExpressionContains: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    let element = try translator.term(element)
    if let range = range as? any TranslatableRange<Element.Output> {
      return try range.containment(of: element, in: translator)
    }
    guard let range = try translator.term(range).constant else {
      throw .unsupported("a range that is an attribute")
    }
    if let range = range as? any BoundedRange<Element.Output> {
      return try translator.containment(of: element, in: range)
    }
    return try translator.map(element) { range.contains($0) }
  }
}

private protocol TranslatableRange<Bound> {
  associatedtype Bound: Comparable

  func containment(
    of element: Term<Bound>,
    in translator: PredicateTranslator
  ) throws(BatchError) -> Term<Bool>
}

extension PredicateExpressions.ClosedRange: TranslatableRange {
  fileprivate func containment(
    of element: Term<LHS.Output>,
    in translator: PredicateTranslator
  ) throws(BatchError) -> Term<Bool> {
    let bounds = (try translator.term(lower), try translator.term(upper))
    if let lower = bounds.0.constant, let upper = bounds.1.constant, lower <= upper {
      return try translator.containment(of: element, in: lower...upper)
    }
    return try translator.containment(of: element, bounds.0, bounds.1, below: .lessThanOrEqual)
  }
}

extension PredicateExpressions.Range: TranslatableRange {
  fileprivate func containment(
    of element: Term<LHS.Output>,
    in translator: PredicateTranslator
  ) throws(BatchError) -> Term<Bool> {
    let bounds = (try translator.term(lower), try translator.term(upper))
    if let lower = bounds.0.constant, let upper = bounds.1.constant, lower <= upper {
      return try translator.containment(of: element, in: lower..<upper)
    }
    return try translator.containment(of: element, bounds.0, bounds.1, below: .lessThan)
  }
}

protocol BoundedRange<Bound>: RangeExpression {
  var bounds: (lower: Bound?, upper: Bound?, isClosed: Bool) { get }
}

extension Range: BoundedRange {
  var bounds: (lower: Bound?, upper: Bound?, isClosed: Bool) { (lowerBound, upperBound, false) }
}

extension ClosedRange: BoundedRange {
  var bounds: (lower: Bound?, upper: Bound?, isClosed: Bool) { (lowerBound, upperBound, true) }
}

extension PartialRangeFrom: BoundedRange {
  var bounds: (lower: Bound?, upper: Bound?, isClosed: Bool) { (lowerBound, nil, false) }
}

extension PartialRangeUpTo: BoundedRange {
  var bounds: (lower: Bound?, upper: Bound?, isClosed: Bool) { (nil, upperBound, false) }
}

extension PartialRangeThrough: BoundedRange {
  var bounds: (lower: Bound?, upper: Bound?, isClosed: Bool) { (nil, upperBound, true) }
}

extension PredicateTranslator {
  func containment<Value, Bounds: BoundedRange>(
    of element: Term<Value>,
    inRange range: Bounds
  ) throws(BatchError) -> Term<Bool> {
    guard let element = element as? Term<Bounds.Bound> else {
      throw .unsupported("a \(Value.self) in a \(Bounds.self)")
    }
    return try containment(of: element, in: range)
  }

  func containment<Bound: Comparable>(
    of element: Term<Bound>,
    in range: any BoundedRange<Bound>
  ) throws(BatchError) -> Term<Bool> {
    if let value = element.constant { return .constant(range.contains(value)) }
    let bounds = range.bounds
    var condition: SQLText?
    if let lower = bounds.lower {
      condition = try canonical(comparison(of: element, .constant(lower), .greaterThanOrEqual)).text
    }
    if let upper = bounds.upper {
      let isBelow = try canonical(
        comparison(of: element, .constant(upper), bounds.isClosed ? .lessThanOrEqual : .lessThan)
      ).text
      condition = condition.map { .and($0, isBelow) } ?? isBelow
    }
    return .condition(condition ?? .true)
  }

  /// Whether a term is in a range whose bounds are terms; fails if the bounds are in the wrong
  /// order.
  fileprivate func containment<Bound: Comparable>(
    of element: Term<Bound>,
    _ lower: Term<Bound>,
    _ upper: Term<Bound>,
    below isBelow: PredicateExpressions.ComparisonOperator
  ) throws(BatchError) -> Term<Bool> {
    let range: Term<Bool> = try map(lower, upper) { lower, upper in
      if lower <= upper { return true }
      throw BatchError(.predicateFailed, "a range of a predicate ends before it begins")
    }
    let isAbove = try canonical(comparison(of: element, lower, .greaterThanOrEqual)).text
    let isInside = try canonical(comparison(of: element, upper, isBelow)).text
    return .condition(.and(try canonical(range).text, .and(isAbove, isInside)))
  }
}
