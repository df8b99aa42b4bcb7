import BatchIdentifiers
import BatchPlatform
import BatchSQLite

private typealias Known = PredicateExpressions.Value

extension PredicateExpressions.SequenceContains: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    let sequence = try translator.term(sequence)
    let element = try translator.term(element)
    if let values = sequence.constant {
      if case .identifier(let object) = element {
        return .condition(try translator.identity(of: object, amongElementsOf: values))
      }
      if let range = values as? any BoundedRange {
        return try translator.containment(of: element, inRange: range)
      }
      if let matched = values as? any MatchedValues<RHS.Output> {
        return .condition(try matched.condition(on: element, in: translator))
      }
      return try translator.membership(of: element, in: values)
    }
    return try translator.map(sequence, element) { $0.contains($1) }
  }
}

extension PredicateTranslator {
  fileprivate func membership<Values: Sequence>(
    of element: Term<Values.Element>,
    in values: Values
  ) throws(BatchError) -> Term<Bool> where Values.Element: Equatable {
    if element.constant == nil, values.underestimatedCount <= Self.greatestListCount,
      let condition = lookUp(element, among: values)
    {
      return .condition(condition)
    }
    if values is any SetAlgebra { return try map(element) { values.contains($0) } }
    if let hashable = Values.Element.self as? any Hashable.Type {
      return try map(element, membership(in: values, hashable))
    }
    return try map(element) { values.contains($0) }
  }

  private func membership<Values: Sequence, Key: Hashable>(
    in values: Values,
    _ type: Key.Type
  ) -> (Values.Element) -> Bool {
    let set = Set(values.lazy.compactMap { $0 as? Key })
    return { ($0 as? Key).map(set.contains) ?? false }
  }
}

// The original expressions evaluate everything else, using the values of a row.

extension PredicateExpressions.CollectionContainsCollection: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    try translator.map(translator.term(base), translator.term(other)) { base, other in
      if let text = base as? String, let other = other as? String, text.isPlain, other.isPlain {
        return text.utf8.contains(other.utf8)
      }
      if let text = base as? FoldedText, let other = other as? FoldedText {
        return text.contains(other)
      }
      return try PredicateExpressions.CollectionContainsCollection(
        base: Known(base),
        other: Known(other)
      )
      .evaluate(PredicateBindings())
    }
  }
}

extension PredicateExpressions.SequenceStartsWith: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    try translator.map(translator.term(base), translator.term(prefix)) { base, prefix in
      base.starts(with: prefix)
    }
  }
}

extension PredicateExpressions.StringContainsRegex: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    try translator.map(translator.term(subject), translator.term(regex)) { subject, regex in
      try PredicateExpressions.StringContainsRegex(subject: Known(subject), regex: Known(regex))
        .evaluate(PredicateBindings())
    }
  }
}

extension PredicateExpressions.SequenceMinimum: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.map(translator.term(elements)) { $0.min() }
  }
}

extension PredicateExpressions.SequenceMaximum: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.map(translator.term(elements)) { $0.max() }
  }
}

extension PredicateExpressions.CollectionIndexSubscript: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.map(translator.term(wrapped), translator.term(index)) { wrapped, index in
      try PredicateExpressions.CollectionIndexSubscript(
        wrapped: Known(wrapped),
        index: Known(index)
      )
      .evaluate(PredicateBindings())
    }
  }
}

extension PredicateExpressions.DictionaryKeySubscript: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    try translator.map(translator.term(wrapped), translator.term(key)) { $0[$1] }
  }
}

extension PredicateExpressions.SequenceContainsWhere: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    if case .objects(let objects) = try translator.term(sequence) {
      let exists = try translator.exists(in: objects) { object throws(BatchError) in
        translator.bind(variable, to: .object(object))
        return try translator.condition(test)
      }
      return .condition(exists)
    }
    var any = SQLText.false
    for element in try translator.elements(of: sequence) {
      translator.bind(variable, to: .constant(element))
      any = .or(any, try translator.condition(test))
    }
    return .condition(any)
  }
}

extension PredicateExpressions.SequenceAllSatisfy: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Bool> {
    if case .objects(let objects) = try translator.term(sequence) {
      let exists = try translator.exists(in: objects) { object throws(BatchError) in
        translator.bind(variable, to: .object(object))
        return try translator.condition(test).negated
      }
      return .condition(exists.negated)
    }
    var all = SQLText.true
    for element in try translator.elements(of: sequence) {
      translator.bind(variable, to: .constant(element))
      all = .and(all, try translator.condition(test))
    }
    return .condition(all)
  }
}

extension PredicateExpressions.Filter: TranslatableExpression {
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output> {
    guard case .objects(var objects) = try translator.term(sequence) else {
      throw .unsupported("a Filter of something other than a to-many relationship")
    }
    func condition(_ object: ObjectTerm) throws(BatchError) -> SQLText {
      translator.bind(variable, to: .object(object))
      return try translator.condition(filter)
    }
    objects.conditions.append(condition)
    return .objects(objects)
  }
}

extension PredicateTranslator {
  fileprivate func elements<Elements: PredicateExpression>(
    of expression: Elements
  ) throws(BatchError) -> [Elements.Output.Element] where Elements.Output: Sequence {
    guard let sequence = try term(expression).constant else {
      throw .unsupported("a condition on the elements of an attribute")
    }
    let elements = Array(sequence.prefix(101))
    guard elements.count <= 100 else {
      throw .unsupported("a condition on each of more than 100 elements")
    }
    return elements
  }
}

extension String {
  /// Whether every byte is a character: in ASCII, only CR LF is a single character of two bytes.
  fileprivate var isPlain: Bool { utf8.allSatisfy { $0 < 0x80 && $0 != 0x0D } }
}
