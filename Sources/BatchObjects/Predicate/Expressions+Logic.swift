import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension PredicateExpressions.Value: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    translator.notation?.append(value)
    return .constant(value)
  }
}

extension PredicateExpressions.Variable: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.term(of: self)
  }
}

extension PredicateExpressions.Conjunction: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    .condition(.and(try translator.condition(lhs), try translator.condition(rhs)))
  }
}

extension PredicateExpressions.Disjunction: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    .condition(.or(try translator.condition(lhs), try translator.condition(rhs)))
  }
}

extension PredicateExpressions.Negation: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    .condition(try translator.condition(wrapped).negated)
  }
}

extension PredicateExpressions.Conditional: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    let test = try translator.condition(test)
    let branches = try translator.unified(
      translator.term(trueBranch),
      translator.term(falseBranch)
    )
    let text = """
      (CASE WHEN \(test.text) THEN \(branches.left.text) ELSE \(branches.right.text) END)
      """
    let canFail = test.canFail || branches.left.canFail || branches.right.canFail
    return .sql(SQLText(text, canFail: canFail), branches.representation)
  }
}

extension Term where Value == Bool {
  /// SQL whose value is 1 or 0.
  static func condition(_ text: SQLText) -> Term { .sql(text, Bool.representation) }
}
