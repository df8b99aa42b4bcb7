import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

extension Predicate {
  /// Makes a predicate that is true if all given predicates are, or if there are none.
  ///
  /// This is `NSCompoundPredicate(andPredicateWithSubpredicates:)` in Core Data:
  ///
  ///     var conditions = [#Predicate<Order> { $0.price > 1000 }]
  ///     if let name { conditions.append(#Predicate { $0.customer?.name == name }) }
  ///     let orders = try context.fetch(FetchDescriptor<Order>(predicate: .all(of: conditions)))
  ///
  /// The first false predicate ends the evaluation, as with `&&`. In `evaluate(_:)`, a predicate
  /// that fails counts as false.
  public static func all<Value: Equatable>(of predicates: [Predicate<Value>]) -> Predicate<Value> {
    PredicateMatches(.all, predicates).predicate
  }

  /// Makes a predicate that is true if one of the given predicates is; the first true one ends the
  /// evaluation.
  public static func any<Value: Equatable>(of predicates: [Predicate<Value>]) -> Predicate<Value> {
    PredicateMatches(.any, predicates).predicate
  }

  /// Makes a predicate that is true if the given predicate is false.
  public static func not<Value: Equatable>(_ predicate: Predicate<Value>) -> Predicate<Value> {
    PredicateMatches(.none, [predicate]).predicate
  }
}

/// The set of all values for which some predicates are true, which is never enumerated.
///
/// A compound predicate asks whether its value is in this set. Foundation has no other suitable
/// expression: its conjunctions have a separate type for each pair, and predicates with custom
/// expressions cannot be printed.
struct PredicateMatches<Value: Equatable>: Sequence, Codable, Sendable, CustomStringConvertible {
  enum Quantifier {
    case all, any, none
  }

  /// SQLite's parser and the stack of the thread limit nesting.
  private static var depthLimit: Int { 50 }

  private let quantifier: Quantifier
  private let predicates: [Predicate<Value>]
  private let depth: Int

  init(_ quantifier: Quantifier, _ predicates: [Predicate<Value>]) {
    // Predicates composed in a loop become as flat as predicates composed at once.
    let flattened = quantifier == .none ? .any : quantifier
    var parts: [Predicate<Value>] = []
    var depth = 0
    for predicate in predicates {
      let inner = Self.made(predicate)
      if let inner, inner.quantifier == flattened {
        parts += inner.predicates
        depth = Swift.max(depth, inner.depth - 1)
      } else {
        parts.append(predicate)
        depth = Swift.max(depth, inner?.depth ?? 0)
      }
    }
    if quantifier == .none, parts.count == 1, let denied = Self.made(parts[0]),
      denied.quantifier == .none
    {
      self = PredicateMatches(.any, denied.predicates)
      return
    }
    self.quantifier = quantifier
    self.predicates = parts
    self.depth = depth + 1
  }

  /// The parts of a compound predicate; nil for any other predicate.
  private static func made(_ predicate: Predicate<Value>) -> PredicateMatches? {
    typealias Question = PredicateExpressions.SequenceContains<
      PredicateExpressions.Value<PredicateMatches>, PredicateExpressions.Variable<Value>
    >
    return (predicate.expression as? Question)?.sequence.value
  }

  var predicate: Predicate<Value> {
    Predicate<Value> { value in
      PredicateExpressions.SequenceContains(
        sequence: PredicateExpressions.Value(self),
        element: value
      )
    }
  }

  func contains(_ value: Value) throws -> Bool {
    for predicate in predicates {
      let isTrue = try predicate.evaluate(value)
      if isTrue != (quantifier == .all) { return quantifier == .any }
    }
    return quantifier != .any
  }

  /// The hook that `contains(_:)` of sequences calls before it searches.
  func _customContainsEquatableElement(_ value: Value) -> Bool? { try? contains(value) }

  func makeIterator() -> EmptyCollection<Value>.Iterator { EmptyCollection().makeIterator() }

  var description: String { "\(quantifier)(of: \(predicates))" }

  // The values in expressions must be codable, but predicates cannot be decoded.

  init(from decoder: any Decoder) throws {
    throw DecodingError.dataCorrupted(
      .init(codingPath: decoder.codingPath, debugDescription: "predicates cannot be decoded")
    )
  }

  func encode(to encoder: any Encoder) throws {
    throw EncodingError.invalidValue(
      self,
      .init(codingPath: encoder.codingPath, debugDescription: "predicates cannot be encoded")
    )
  }
}

protocol MatchedValues<Element>: Sequence {
  func condition(on element: Term<Element>, in translator: PredicateTranslator) throws(BatchError)
    -> SQLText
}

extension PredicateMatches: MatchedValues {
  func condition(
    on element: Term<Value>,
    in translator: PredicateTranslator
  ) throws(BatchError) -> SQLText {
    guard depth <= Self.depthLimit else {
      throw BatchError(
        .unsupportedPredicate,
        "a predicate is put together of others that are \(depth) deep in each other, and"
          + " \(Self.depthLimit) are the limit",
        remedy: "give all(of:) and any(of:) many predicates at once"
      )
    }
    var conditions: [SQLText] = []
    for predicate in predicates {
      translator.bind(predicate.variable, to: element)
      conditions.append(try translator.condition(predicate.expression))
    }
    switch quantifier {
    case .all: return .all(conditions)
    case .any: return .any(conditions)
    case .none: return SQLText.any(conditions).negated
    }
  }
}
