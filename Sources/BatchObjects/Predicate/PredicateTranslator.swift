import BatchRuns
public import BatchIdentifiers
import BatchPlatform
import BatchSQLite

/// Translates the expressions of predicates to SQL with their meaning in Swift.
///
/// What SQLite compares as Swift does becomes SQL that can use an index. The rest becomes calls of
/// Swift closures, which get the row's values and evaluate the original expression: strings are
/// searched by characters, and integer overflow is an error. Anything else is refused.
///
/// Every condition is true or false and never NULL; an expression is NULL if it is nil in Swift.
final class PredicateTranslator {
  let container: ModelContainer
  /// Whether identifiers are looked up in the table; if not, each row is tested, which suits
  /// statements that find a few of many rows by other means.
  let looksUpIdentifiers: Bool
  /// Unsaved changes of related objects, if they count.
  let unsaved: UnsavedRelated?
  /// The values for the statement's placeholders.
  private(set) var parameters: [StatementParameter] = []
  /// The entities of related rows, by the numbers of their tables' names in the statement.
  private var aliases: [ModelEntity] = []
  /// Columns of other tables by which related rows are found.
  private var noted: [IndexCandidate] = []
  /// Whether the statement reads rows other than the one that the condition is about.
  var readsRelatedRows: Bool { !aliases.isEmpty }
  private var variables: [PredicateExpressions.VariableID: Any] = [:]

  init(
    _ container: ModelContainer,
    looksUpIdentifiers: Bool = true,
    unsaved: UnsavedRelated? = nil
  ) {
    self.container = container
    self.looksUpIdentifiers = looksUpIdentifiers
    self.unsaved = unsaved
  }

  /// The term of an expression.
  func term<Expression: PredicateExpression>(
    _ expression: Expression
  ) throws(BatchError) -> Term<Expression.Output> {
    guard let expression = expression as? any TranslatableExpression<Expression.Output> else {
      throw .unsupported(Self.name(of: Expression.self))
    }
    return try expression.term(in: self)
  }

  /// The term of a Boolean expression, as SQL.
  func condition<Expression: PredicateExpression<Bool>>(
    _ expression: Expression
  ) throws(BatchError) -> SQLText {
    try canonical(term(expression)).text
  }

  // MARK: Parameters and variables

  /// The placeholder of a value in the statement.
  func place(_ value: SQLValue) -> String { place(.value(value)) }

  /// The placeholder of a closure in the statement.
  func place(
    _ body: @escaping ([SQLValue]) throws(BatchError) -> SQLValue
  ) -> String {
    place(.function(SwiftFunction(body)))
  }

  private func place(_ parameter: StatementParameter) -> String {
    parameters.append(parameter)
    return "?\(parameters.count)"
  }

  /// The value of a piece of SQL that is only a placeholder.
  func value(of text: SQLText) -> SQLValue? {
    guard text.text.first == "?", let number = Int(text.text.dropFirst()),
      case .value(let value) = parameters[number - 1]
    else { return nil }
    return value
  }

  /// The term of a variable.
  func term<Value>(
    of variable: PredicateExpressions.Variable<Value>
  ) throws(BatchError) -> Term<Value> {
    if let term = variables[variable.key] as? Term<Value> { return term }
    throw .unsupported("a variable of another predicate")
  }

  /// Binds a variable to a term.
  func bind<Value>(_ variable: PredicateExpressions.Variable<Value>, to term: Term<Value>) {
    variables[variable.key] = term
  }

  /// A name for another table in the statement.
  func nextAlias(of entity: ModelEntity) -> String {
    aliases.append(entity)
    return "_related\(aliases.count)"
  }

  /// Notes a column by which related rows are found.
  func note(_ candidate: IndexCandidate) { noted.append(candidate) }

  /// The tables of related rows.
  var relatedTables: [String] { aliases.map(\.entity.table) }

  /// The columns that a statement about rows of an entity reads, which an index might cover.
  func indexCandidates(of sql: String, about entity: ModelEntity) -> [IndexCandidate] {
    let names = [(SQLName.quoted(entity.entity.table), entity)]
    let related = aliases.enumerated().map { ("_related\($0 + 1)", $1) }
    var candidates = noted
    for (name, entity) in names + related {
      let key = entity.entity.key?.columns ?? []
      candidates += entity.columns.filter { column in
        key.first != column && sql.contains("\(name).\(SQLName.quoted(column))")
      }.map { IndexCandidate(entity.entity.table, $0) }
    }
    var known: Set<IndexCandidate> = []
    return candidates.filter { known.insert($0).inserted }
  }

  // MARK: Terms as SQL

  /// A term as SQL, in a representation in which all values of its type can be compared.
  ///
  /// - Throws: `BatchError` with code `unsupportedPredicate` if the type has none.
  func canonical<Value>(
    _ term: Term<Value>
  ) throws(BatchError) -> (text: SQLText, representation: Representation<Value>) {
    guard let canonical = Representation<Value>.canonical else {
      throw .unsupported("a value of type \(Value.self) in this place")
    }
    switch term {
    case .constant(let value):
      guard let stored = canonical.encode(value) else {
        throw .unsupported("a \(Value.self) without a value in SQL, such as NaN")
      }
      return (SQLText(place(stored)), canonical)
    case .sql(let text, let representation) where representation.isCanonical:
      return (text, canonical)
    case .sql, .computed:
      return (call(try computation(term), as: canonical), canonical)
    case .object, .objects, .identifier:
      throw .unsupported("an object in this place")
    }
  }

  /// Two terms as SQL in one representation.
  func unified<Value>(
    _ left: Term<Value>,
    _ right: Term<Value>
  ) throws(BatchError) -> (left: SQLText, right: SQLText, representation: Representation<Value>) {
    if Representation<Value>.canonical == nil {
      switch (left, right) {
      case (.sql(let text, let representation), .constant(let value)):
        return (text, try stored(value, as: representation), representation)
      case (.constant(let value), .sql(let text, let representation)):
        return (try stored(value, as: representation), text, representation)
      default: break
      }
    }
    let left = try canonical(left)
    return (left.text, try canonical(right).text, left.representation)
  }

  /// A value as an attribute would store it, if reading returns the same value.
  private func stored<Value>(
    _ value: Value,
    as representation: Representation<Value>
  ) throws(BatchError) -> SQLText {
    func isEqual<Known: Equatable>(_ value: Known, to other: Any) -> Bool {
      other as? Known == value
    }
    guard let stored = representation.encode(value), let again = representation.decode(stored),
      let comparable = value as? any Equatable, isEqual(comparable, to: again)
    else { throw .unsupported("a value of type \(Value.self) in this place") }
    return SQLText(place(stored))
  }

  // MARK: Calls of Swift

  /// The result of a Swift closure for one value.
  func map<Value, Result>(
    _ term: Term<Value>,
    _ body: @escaping (Value) throws -> Result
  ) throws(BatchError) -> Term<Result> {
    Self.folded(try computation(term).map(body))
  }

  /// The result of a Swift closure for two values.
  func map<First, Second, Result>(
    _ first: Term<First>,
    _ second: Term<Second>,
    _ body: @escaping (First, Second) throws -> Result
  ) throws(BatchError) -> Term<Result> {
    Self.folded(try computation(first).with(computation(second)).map { try body($0.0, $0.1) })
  }

  /// What is the same for all rows is computed once; if that fails, it fails only for rows that
  /// need it.
  private static func folded<Value>(_ computation: Computation<Value>) -> Term<Value> {
    if computation.columns.isEmpty, let value = try? computation.value([], 0) {
      return .constant(value)
    }
    return .computed(computation)
  }

  /// A term as a Swift closure that computes its value.
  private func computation<Value>(
    _ term: Term<Value>
  ) throws(BatchError) -> Computation<Value> {
    switch term {
    case .constant(let value): return Computation(columns: []) { _, _ in value }
    case .computed(let computation): return computation
    case .sql(let text, let representation):
      return Computation(columns: [text.text]) { row, position in
        if let value = representation.decode(row[position]) { return value }
        throw BatchError(
          .valueMismatch,
          "an attribute of type \(Value.self) has \(row[position].className) in a row",
          remedy: "correct the row, or declare the attribute with the type of its values"
        )
      }
    case .object, .objects, .identifier: throw .unsupported("an object in this place")
    }
  }

  /// The call of a Swift closure that computes a value.
  private func call<Value>(
    _ computation: Computation<Value>,
    as representation: Representation<Value>
  ) -> SQLText {
    let function = place { row throws(BatchError) in
      let result: Value
      do {
        result = try computation.value(row, 0)
      } catch let error as BatchError {
        throw error
      } catch {
        throw BatchError(.predicateFailed, "\(error)", underlying: error)
      }
      if let value = representation.encode(result) { return value }
      throw BatchError(
        .predicateFailed,
        "a predicate computes a \(Value.self) without a value in SQL, such as NaN"
      )
    }
    let list = ([function] + computation.columns).joined(separator: ", ")
    return SQLText("\(SwiftFunction.sqlName)(\(list))", canFail: true)
  }

  /// The name of a kind of expression, for errors: `SequenceContains`.
  private static func name(of type: Any.Type) -> String {
    let name = String(describing: type)
    return String(name.prefix { $0 != "<" })
  }
}

/// An expression of a predicate that can become SQL.
protocol TranslatableExpression<Output>: PredicateExpression {
  /// Translates the expression.
  ///
  /// - Throws: `BatchError` with code `unsupportedPredicate` if SQL would not mean the same.
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output>
}

extension BatchError.Code {
  /// A predicate contains something without an equivalent in SQL.
  public static let unsupportedPredicate = Self(rawValue: "unsupportedPredicate")
  /// A predicate cannot be evaluated for a row: a number overflows, or a nil is unwrapped.
  public static let predicateFailed = Self(rawValue: "predicateFailed")
}

extension BatchError {
  /// An error of code `unsupportedPredicate`.
  static func unsupported(
    _ construct: String,
    remedy: String = "fetch without it, and filter the objects"
  ) -> BatchError {
    BatchError(
      .unsupportedPredicate,
      "a predicate for SQL cannot have \(construct)",
      remedy: remedy
    )
  }
}
