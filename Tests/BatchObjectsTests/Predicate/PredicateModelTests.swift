import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Random predicates over random rows, in SQL and in Swift.
@Suite struct PredicateModelTests {
  @Test(arguments: 0..<4)
  func `random predicates find in SQL what they find in Swift`(_ part: Int) async throws {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let context = ModelContext(
      try await Samples.open(Samples.make(60, in: directory, with: &generator))
    )
    let all = try context.fetch(FetchDescriptor<Sample>())
    var found = 0
    for number in 0..<400 {
      var random = RandomPredicate(generator: generator)
      let (predicate, evaluate) = random.make()
      generator = random.generator
      // What traps in Swift is left out by construction; what throws must fail in SQL too.
      let expected = Result {
        try all.filter(evaluate).map(\.persistentModelID)
      }
      let comment: Comment = "seed \(seed), predicate \(number): \(predicate.description)"
      switch expected {
      case .success(let expected):
        found += expected.count
        do {
          let actual = try context.fetchIdentifiers(FetchDescriptor(predicate: predicate))
          let wrong = Set(actual).symmetricDifference(expected).map(\.primaryKey)
          #expect(wrong.isEmpty, comment)
        } catch {
          Issue.record("\(error), \(comment)")
        }
      case .failure:
        #expect(throws: BatchError.self, comment) {
          try context.fetchCount(FetchDescriptor(predicate: predicate))
        }
      }
    }
    #expect(found > 1_000, "seed \(seed): the predicates select next to nothing")
  }
}

/// Creates predicates of random expressions.
private struct RandomPredicate {
  typealias E = PredicateExpressions
  typealias Row = E.Variable<Sample>
  typealias Condition = any StandardPredicateExpression<Bool>
  typealias Expression<Value> = any StandardPredicateExpression<Value>

  var generator: SeededGenerator

  /// One predicate, or several composed at run time, and its result for an object: where Swift
  /// evaluates them, composed ones treat a failure as false.
  mutating func make() -> (Predicate<Sample>, (Sample) throws -> Bool) {
    guard random(3) == 0 else {
      let predicate = one()
      return (predicate, { try predicate.evaluate($0) })
    }
    var several: [(predicate: Predicate<Sample>, evaluate: (Sample) throws -> Bool)] = []
    for _ in 0..<random(4) { several.append(make()) }
    let predicates = several.map(\.predicate)
    switch random(4) {
    case 0:
      return (
        .all(of: predicates), { sample in try several.allSatisfy { try $0.evaluate(sample) } }
      )
    case 1, 2:
      return (.any(of: predicates), { sample in try several.contains { try $0.evaluate(sample) } })
    default:
      return (
        .not(.all(of: predicates)),
        { sample in try !several.allSatisfy { try $0.evaluate(sample) } }
      )
    }
  }

  private mutating func one() -> Predicate<Sample> {
    var copy = self
    let depth = Int.random(in: 0...3, using: &copy.generator)
    let predicate = Predicate<Sample> { row in copy.condition(row, depth) }
    self = copy
    return predicate
  }

  private mutating func random(_ count: Int) -> Int {
    Int.random(in: 0..<count, using: &generator)
  }

  private mutating func pick<Value>(_ values: [Value]) -> Value { values[random(values.count)] }

  private mutating func constant<Value: Codable & Sendable>(
    _ values: [Value]
  ) -> Expression<Value> {
    E.Value(pick(values))
  }

  // MARK: Conditions

  private mutating func condition(_ row: Row, _ depth: Int) -> Condition {
    guard depth > 0 else { return leaf(row) }
    let (first, second) = (condition(row, depth - 1), condition(row, depth - 1))
    return switch random(7) {
    case 0, 1: and(first, second)
    case 2, 3: or(first, second)
    case 4: not(first)
    case 5: conditional(first, second, condition(row, depth - 1))
    default: equality(first, second)
    }
  }

  private mutating func leaf(_ row: Row) -> Condition {
    switch random(23) {
    case 20: return standardContains(text(row), text(row))
    case 21: return caseInsensitiveOrder(text(row), text(row))
    case 22: return listed(row)
    case 0: return comparison(integer(row), integer(row))
    case 1: return equality(integer(row), integer(row))
    case 2: return equality(optionalInteger(row), optionalInteger(row))
    case 3: return comparison(double(row), double(row))
    case 4: return equality(E.KeyPath(root: row, keyPath: \.optionalDouble), optionalDouble())
    case 5: return comparison(text(row), text(row))
    case 6: return equality(text(row), text(row))
    case 7: return equality(E.KeyPath(root: row, keyPath: \.optionalText), optionalText())
    case 8: return contains(text(row), text(row))
    case 9: return starts(text(row), text(row))
    case 10: return comparison(date(row), date(row))
    case 11: return equality(date(row), date(row))
    case 12: return E.KeyPath(root: row, keyPath: \.flag)
    case 13: return equality(optionalFlag(row), E.Value(pick([true, false, nil])))
    case 14: return equality(uuid(row), uuid(row))
    case 15: return comparison(uuid(row), uuid(row))
    case 16: return equality(color(row), color(row))
    case 17: return membership(row)
    case 18: return range(row)
    default: return optional(row)
    }
  }

  /// Membership in lists of values that are stored in several forms.
  private mutating func listed(_ row: Row) -> Condition {
    switch random(3) {
    case 0:
      let values = (0..<random(3)).map { _ in pick(Samples.uuids) }
      return E.SequenceContains(
        sequence: E.Value(values),
        element: E.KeyPath(root: row, keyPath: \Sample.uuid)
      )
    case 1:
      let values = (0..<random(3)).map { _ in pick([Sample.Color.red, .green, .blue]) }
      return E.SequenceContains(
        sequence: E.Value(values),
        element: E.KeyPath(root: row, keyPath: \Sample.color)
      )
    default:
      let values = [Sample.Color?.none, pick([.red, .green, .blue])]
      return E.SequenceContains(
        sequence: E.Value(values),
        element: E.KeyPath(root: row, keyPath: \Sample.optionalColor)
      )
    }
  }

  /// What asks whether there is a value.
  private mutating func optional(_ row: Row) -> Condition {
    let number = pick(Edges.integers)
    let wrapped = E.KeyPath(root: row, keyPath: \Sample.optionalInt)
    let isGreater = E.OptionalFlatMap(wrapped) { variable in
      E.Comparison(lhs: variable, rhs: E.Value(number), op: .greaterThan)
    }
    switch random(4) {
    case 0: return E.NilCoalesce(lhs: isGreater, rhs: E.Value(false))
    case 1: return E.NilCoalesce(lhs: isGreater, rhs: E.Value(true))
    case 2: return equality(isGreater, E.Value(pick([true, false, nil])))
    default:
      // It throws where there is none, unless that was asked for before.
      let unwrapped = equality(E.ForcedUnwrap(wrapped), E.Value(number))
      let isNil = equality(wrapped, E.NilLiteral<Int>())
      return pick([unwrapped, or(isNil, unwrapped), and(not(isNil), unwrapped)])
    }
  }

  private mutating func membership(_ row: Row) -> Condition {
    switch random(5) {
    case 0: return E.SequenceContains(sequence: E.Value(Edges.integers), element: row.int)
    case 1:
      let values: [Int?] = [1, 2, .min] + (random(2) == 0 ? [nil] : [])
      let element = E.KeyPath(root: row, keyPath: \Sample.optionalInt)
      return E.SequenceContains(sequence: E.Value(values), element: element)
    case 2:
      let values: [Int?] = Array(-200...200) + (random(2) == 0 ? [nil] : [])
      let element = E.KeyPath(root: row, keyPath: \Sample.optionalInt)
      return E.SequenceContains(sequence: E.Value(values), element: element)
    case 3:
      let values = Set((0..<random(9)).map { _ in pick(Edges.texts) })
      return E.SequenceContains(
        sequence: E.Value(values),
        element: E.KeyPath(root: row, keyPath: \Sample.text)
      )
    default:
      let values = [pick(Edges.doubles), .nan]
      return E.SequenceContains(
        sequence: E.Value(values),
        element: E.KeyPath(root: row, keyPath: \Sample.double)
      )
    }
  }

  private mutating func range(_ row: Row) -> Condition {
    let bounds = [pick(Edges.integers), pick(Edges.integers)].sorted()
    let texts = [pick(Edges.texts), pick(Edges.texts)].sorted()
    let element = E.KeyPath(root: row, keyPath: \Sample.text)
    return switch random(3) {
    case 0:
      E.RangeExpressionContains(
        range: E.ClosedRange(lower: E.Value(bounds[0]), upper: E.Value(bounds[1])),
        element: row.int
      )
    case 1: E.RangeExpressionContains(range: E.Value(texts[0]..<texts[1]), element: element)
    default:
      E.RangeExpressionContains(
        range: E.Range(lower: E.Value(texts[0]), upper: E.Value(texts[1])),
        element: element
      )
    }
  }

  // MARK: Values

  private mutating func integer(_ row: Row) -> Expression<Int> {
    let count = E.KeyPath(root: E.KeyPath(root: row, keyPath: \Sample.text), keyPath: \.count)
    switch random(7) {
    case 0, 1: return row.int
    case 2: return constant(Edges.integers)
    case 3:
      let optional = E.KeyPath(root: row, keyPath: \Sample.optionalInt)
      return E.NilCoalesce(lhs: optional, rhs: E.Value(pick(Edges.integers)))
    case 4:
      return E.Arithmetic(lhs: count, rhs: E.Value(3), op: pick([.add, .multiply, .subtract]))
    case 5: return E.IntRemainder(lhs: row.int, rhs: E.Value(pick([2, 3, -7, .max])))
    default: return E.IntDivision(lhs: row.int, rhs: E.Value(pick([2, 3, -7, .max])))
    }
  }

  private mutating func optionalInteger(_ row: Row) -> Expression<Int?> {
    switch random(3) {
    case 0: E.KeyPath(root: row, keyPath: \Sample.optionalInt)
    case 1: E.Value(pick(Edges.integers.map(Optional.some) + [nil]))
    default: E.NilLiteral<Int>()
    }
  }

  private mutating func optionalDouble() -> Expression<Double?> {
    E.Value(pick(Edges.doubles.map(Optional.some) + [nil]))
  }

  private mutating func optionalText() -> Expression<String?> {
    E.Value(pick(Edges.texts.map(Optional.some) + [nil]))
  }

  private mutating func optionalFlag(_ row: Row) -> Expression<Bool?> {
    E.KeyPath(root: row, keyPath: \Sample.optionalFlag)
  }

  private mutating func double(_ row: Row) -> Expression<Double> {
    let double = E.KeyPath(root: row, keyPath: \Sample.double)
    return switch random(4) {
    case 0: double
    case 1: constant(Edges.doubles)
    case 2: E.UnaryMinus(double)
    default:
      E.NilCoalesce(
        lhs: E.KeyPath(root: row, keyPath: \Sample.optionalDouble),
        rhs: E.Value(pick(Edges.doubles))
      )
    }
  }

  private mutating func text(_ row: Row) -> Expression<String> {
    let text = E.KeyPath(root: row, keyPath: \Sample.text)
    return switch random(5) {
    case 0: text
    case 1, 2: constant(Edges.texts)
    case 3:
      E.Conditional(
        test: E.KeyPath(root: row, keyPath: \Sample.flag),
        trueBranch: text,
        falseBranch: E.Value(pick(Edges.texts))
      )
    default:
      E.NilCoalesce(
        lhs: E.KeyPath(root: row, keyPath: \Sample.optionalText),
        rhs: E.Value(pick(Edges.texts))
      )
    }
  }

  private mutating func date(_ row: Row) -> Expression<Date> {
    switch random(4) {
    case 0: E.KeyPath(root: row, keyPath: \Sample.iso)
    case 1: E.KeyPath(root: row, keyPath: \Sample.reference)
    case 2:
      E.NilCoalesce(
        lhs: E.KeyPath(root: row, keyPath: \Sample.unix),
        rhs: E.Value(Date(timeIntervalSince1970: pick(Edges.seconds)))
      )
    default: E.Value(Date(timeIntervalSince1970: pick(Edges.seconds)))
    }
  }

  private mutating func uuid(_ row: Row) -> Expression<UUID> {
    random(2) == 0 ? E.KeyPath(root: row, keyPath: \Sample.uuid) : constant(Samples.uuids)
  }

  private mutating func color(_ row: Row) -> Expression<Sample.Color> {
    switch random(3) {
    case 0: E.KeyPath(root: row, keyPath: \Sample.color)
    case 1: constant([.red, .green, .blue])
    default:
      E.NilCoalesce(
        lhs: E.KeyPath(root: row, keyPath: \Sample.optionalColor),
        rhs: E.Value(pick([.red, .green, .blue]))
      )
    }
  }

  // MARK: Operators

  private mutating func comparison<Value: Comparable>(
    _ left: Expression<Value>,
    _ right: Expression<Value>
  ) -> Condition {
    func compare<L: StandardPredicateExpression<Value>, R: StandardPredicateExpression<Value>>(
      _ left: L,
      _ right: R
    ) -> Condition {
      let operators: [E.ComparisonOperator] = [
        .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual,
      ]
      return E.Comparison(lhs: left, rhs: right, op: pick(operators))
    }
    return compare(left, right)
  }

  private mutating func equality<Value: Equatable>(
    _ left: Expression<Value>,
    _ right: Expression<Value>
  ) -> Condition {
    func equal<L: StandardPredicateExpression<Value>, R: StandardPredicateExpression<Value>>(
      _ left: L,
      _ right: R
    ) -> Condition {
      random(2) == 0 ? E.Equal(lhs: left, rhs: right) : E.NotEqual(lhs: left, rhs: right)
    }
    return equal(left, right)
  }

  private func and(
    _ left: some StandardPredicateExpression<Bool>,
    _ right: some StandardPredicateExpression<Bool>
  ) -> Condition { E.Conjunction(lhs: left, rhs: right) }

  private func or(
    _ left: some StandardPredicateExpression<Bool>,
    _ right: some StandardPredicateExpression<Bool>
  ) -> Condition { E.Disjunction(lhs: left, rhs: right) }

  private func not(_ condition: some StandardPredicateExpression<Bool>) -> Condition {
    E.Negation(condition)
  }

  private func conditional(
    _ test: some StandardPredicateExpression<Bool>,
    _ first: some StandardPredicateExpression<Bool>,
    _ second: some StandardPredicateExpression<Bool>
  ) -> Condition { E.Conditional(test: test, trueBranch: first, falseBranch: second) }

  private func contains(
    _ text: some StandardPredicateExpression<String>,
    _ other: some StandardPredicateExpression<String>
  ) -> Condition { E.CollectionContainsCollection(base: text, other: other) }

  private func standardContains(
    _ text: some StandardPredicateExpression<String>,
    _ other: some StandardPredicateExpression<String>
  ) -> Condition { E.build_localizedStandardContains(text, other) }

  private mutating func caseInsensitiveOrder(
    _ text: some StandardPredicateExpression<String>,
    _ other: some StandardPredicateExpression<String>
  ) -> Condition {
    let results: [ComparisonResult] = [.orderedAscending, .orderedSame, .orderedDescending]
    return equality(E.build_caseInsensitiveCompare(text, other), E.Value(pick(results)))
  }

  private func starts(
    _ text: some StandardPredicateExpression<String>,
    _ other: some StandardPredicateExpression<String>
  ) -> Condition { E.SequenceStartsWith(base: text, prefix: other) }
}

extension PredicateExpressions.Variable<Sample> {
  fileprivate var int: PredicateExpressions.KeyPath<Self, Int> {
    PredicateExpressions.KeyPath(root: self, keyPath: \.int)
  }
}
