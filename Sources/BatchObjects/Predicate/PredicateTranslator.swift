import BatchRuns
public import BatchIdentifiers
import BatchPlatform
import BatchSQLite

/// Translates the expressions of predicates to SQL with the same meaning as in Swift.
///
/// Comparisons that are the same in SQLite and Swift become SQL that can use an index. Others
/// become calls of Swift closures, which get the values of a row and evaluate the original
/// expression: strings are searched by characters, and integer overflow is an error. Anything else
/// is refused.
///
/// A condition is always true or false, never NULL; an expression is NULL if it is nil in Swift.
final class PredicateTranslator {
  let container: ModelContainer
  /// Whether identifiers are looked up in the table.
  ///
  /// If not, each row is tested, which suits statements that find a few rows in some other way.
  let looksUpIdentifiers: Bool
  /// Unsaved changes of related objects, if these count.
  let unsaved: UnsavedRelated?
  private(set) var parameters: [StatementParameter] = []
  /// The entities of related rows; the numbers in the names of their tables are the indexes here.
  private var aliases: [ModelEntity] = []
  /// Columns that are used to find related rows in other tables.
  private var noted: [IndexCandidate] = []
  /// Whether the statement reads other rows than the one that the condition is about.
  var readsRelatedRows: Bool { !aliases.isEmpty }
  /// What is translated, as a text to compare; nil if none is needed.
  var notation: PredicateNotation?
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

  func term<Expression: PredicateExpression>(
    _ expression: Expression
  ) throws(BatchError) -> Term<Expression.Output> {
    guard let expression = expression as? any TranslatableExpression<Expression.Output> else {
      throw .unsupported(Self.name(of: Expression.self))
    }
    notation?.begin(Expression.self, name: Self.name(of: Expression.self))
    return try expression.term(in: self)
  }

  func condition<Expression: PredicateExpression<Bool>>(
    _ expression: Expression
  ) throws(BatchError) -> SQLText {
    try canonical(term(expression)).text
  }

  // MARK: Parameters and variables

  func place(_ value: SQLValue) -> String { place(.value(value)) }

  func place(
    _ body: @escaping ([SQLValue]) throws(BatchError) -> SQLValue
  ) -> String {
    place(.function(SwiftFunction(body)))
  }

  private func place(_ parameter: StatementParameter) -> String {
    parameters.append(parameter)
    return "?\(parameters.count)"
  }

  /// The value of SQL that is only a placeholder; nil for any other.
  func value(of text: SQLText) -> SQLValue? {
    guard text.text.first == "?", let number = Int(text.text.dropFirst()),
      case .value(let value) = parameters[number - 1]
    else { return nil }
    return value
  }

  func term<Value>(
    of variable: PredicateExpressions.Variable<Value>
  ) throws(BatchError) -> Term<Value> {
    if let term = variables[variable.key] as? Term<Value> { return term }
    throw .unsupported("a variable of another predicate")
  }

  func bind<Value>(_ variable: PredicateExpressions.Variable<Value>, to term: Term<Value>) {
    variables[variable.key] = term
  }

  func nextAlias(of entity: ModelEntity) -> String {
    aliases.append(entity)
    return "_related\(aliases.count)"
  }

  func note(_ candidate: IndexCandidate) { noted.append(candidate) }

  var relatedTables: [String] { aliases.map(\.entity.table) }

  /// The columns that a statement reads, which an index might cover.
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

  /// A term as SQL, in a representation that can compare all values of the type.
  ///
  /// Throws `unsupportedPredicate` if there is no such representation.
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

  /// A value as an attribute would store it, if reading it returns the same value.
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

  func map<Value, Result>(
    _ term: Term<Value>,
    _ body: @escaping (Value) throws -> Result
  ) throws(BatchError) -> Term<Result> {
    Self.folded(try computation(term).map(body))
  }

  func map<First, Second, Result>(
    _ first: Term<First>,
    _ second: Term<Second>,
    _ body: @escaping (First, Second) throws -> Result
  ) throws(BatchError) -> Term<Result> {
    Self.folded(try computation(first).with(computation(second)).map { try body($0.0, $0.1) })
  }

  /// A computation that is the same for all rows is done once; if it fails, it fails only for rows
  /// that need it.
  private static func folded<Value>(_ computation: Computation<Value>) -> Term<Value> {
    if computation.columns.isEmpty, let value = try? computation.value([], 0) {
      return .constant(value)
    }
    return .computed(computation)
  }

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

  private static func name(of type: Any.Type) -> String {
    let name = String(describing: type)
    return String(name.prefix { $0 != "<" })
  }
}

protocol TranslatableExpression<Output>: PredicateExpression {
  /// Throws `unsupportedPredicate` if SQL would have another meaning.
  func term(in translator: PredicateTranslator) throws(BatchError) -> Term<Output>
}

extension BatchError.Code {
  /// A predicate contains an expression without an equivalent in SQL.
  public static let unsupportedPredicate = Self(rawValue: "unsupportedPredicate")
  /// A predicate cannot be evaluated for a row: a number overflows, or nil is unwrapped.
  public static let predicateFailed = Self(rawValue: "predicateFailed")
}

extension BatchError {
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
