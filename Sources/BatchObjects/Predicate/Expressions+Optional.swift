import BatchRuns
import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension PredicateExpressions.NilLiteral: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Wrapped?> {
    .constant(nil)
  }
}

extension PredicateExpressions.NilCoalesce: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    let left = try translator.term(lhs)
    let right = try translator.term(rhs)
    if case .constant(let value) = left { return value.map(Term.constant) ?? right }
    if case .sql(let text, let representation) = left, let guarded = text.guarded,
      let right = right as? Term<Bool>, right.constant == false
    {
      // Means `if let x { x > 5 } else { false }`, in a form that can use an index.
      let text = SQLText("(\(guarded.condition) AND \(guarded.value))")
      return .sql(text, representation.unwrapped())
    }
    let sides = try translator.unified(left, right.optional)
    return .sql(
      SQLText(
        "coalesce(\(sides.left.text), \(sides.right.text))",
        canFail: sides.left.canFail || sides.right.canFail
      ),
      sides.representation.unwrapped()
    )
  }
}

extension PredicateExpressions.OptionalFlatMap: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Result?> {
    guard !(Result.self is any OptionalValue.Type) else {
      throw .unsupported("an optional of an optional")
    }
    let wrapped = try translator.term(wrapped)
    if case .constant(let value) = wrapped {
      guard let value else { return .constant(nil) }
      translator.bind(variable, to: .constant(value))
      return try transformed(in: translator)
    }
    let isPresent = try translator.isPresent(wrapped)
    translator.bind(variable, to: try wrapped.unwrapped())
    switch try transformed(in: translator) {
    case .constant(let value):
      let (text, representation) = try translator.canonical(.constant(value))
      return .sql(SQLText(text, where: isPresent), representation)
    case .sql(let text, let representation):
      return .sql(SQLText(text, where: isPresent), representation)
    case .computed(let computation):
      let term = Term<Result?>.computed(computation)
      let (text, representation) = try translator.canonical(term)
      return .sql(SQLText(text, where: isPresent), representation)
    case let object:
      // A missing object refers to nothing.
      return object
    }
  }

  private func transformed(
    in translator: PredicateTranslator
  ) throws(BatchError) -> Term<Result?> {
    let term = try translator.term(transform)
    if let term = term as? Term<Result> { return term.optional }
    guard let term = term as? Term<Result?> else {
      throw .unsupported("a flatMap to \(RHS.Output.self)")
    }
    return term
  }
}

extension PredicateExpressions.ForcedUnwrap: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Wrapped> {
    let isNil = BatchError(.predicateFailed, "a \(Wrapped?.self) is nil where it is unwrapped")
    let term = try translator.term(inner)
    switch term {
    case .constant(let value?): return .constant(value)
    case .object, .objects, .identifier:
      throw BatchError(
        .unsupportedPredicate,
        "a predicate for SQL cannot force-unwrap an object",
        remedy: "write ?. instead of !."
      )
    case .computed(let computation):
      return .computed(computation.map { value in if let value { value } else { throw isNil } })
    case .constant, .sql: break
    }
    let (text, representation) =
      if case .sql(let text, let representation) = term {
        (text, representation)
      } else {
        try translator.canonical(term)
      }
    let function = translator.place { row throws(BatchError) in
      if row[0] != .null { return row[0] }
      throw isNil
    }
    return .sql(
      SQLText("\(SwiftFunction.sqlName)(\(function), \(text.text))", canFail: true),
      representation.unwrapped()
    )
  }
}

extension PredicateTranslator {
  fileprivate func isPresent<Wrapped>(_ term: Term<Wrapped?>) throws(BatchError) -> SQLText {
    switch term {
    case .constant(let value): value == nil ? .false : .true
    case .sql(let text, _): SQLText("(\(text.text) IS NOT NULL)", canFail: text.canFail)
    case .computed: try canonical(map(term) { $0 != nil }).text
    case .object(let object), .identifier(let object): object.isPresent
    case .objects: .true
    }
  }
}

extension Term {
  /// The same term for a value that is known not to be nil.
  fileprivate func unwrapped<Wrapped>() throws(BatchError) -> Term<Wrapped>
  where Value == Wrapped? {
    switch self {
    case .constant(let value?): return .constant(value)
    case .constant: throw .unsupported("a nil that is unwrapped")
    case .sql(let text, let representation): return .sql(text, representation.unwrapped())
    case .computed(let computation):
      return .computed(
        computation.map { value in
          if let value { return value }
          throw BatchError.unsupported("a nil that is unwrapped")
        }
      )
    case .object(let object): return .object(object)
    case .objects(let objects): return .objects(objects)
    case .identifier(let object): return .identifier(object)
    }
  }
}

private protocol OptionalValue {}

extension Optional: OptionalValue {}
