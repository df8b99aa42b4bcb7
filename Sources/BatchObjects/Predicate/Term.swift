import BatchRuns
import BatchIdentifiers
import BatchSQLite

enum Term<Value> {
  /// A value that is the same for all rows.
  case constant(Value)
  /// SQL that computes the value for a row.
  case sql(SQLText, Representation<Value>)
  /// A Swift closure that computes the value from columns of a row.
  case computed(Computation<Value>)
  /// An object or nil, from which key paths continue.
  case object(ObjectTerm)
  case objects(ObjectsTerm)
  /// The identifier of an object, or nil.
  case identifier(ObjectTerm)
}

extension Term {
  /// The same term, where nil is allowed too.
  var optional: Term<Value?> {
    switch self {
    case .constant(let value): .constant(value)
    case .sql(let text, let representation): .sql(text, representation.optional)
    case .computed(let computation): .computed(computation.map { $0 })
    case .object(let object): .object(object)
    case .objects(let objects): .objects(objects)
    case .identifier(let object): .identifier(object)
    }
  }

  /// The value if it is the same for all rows.
  var constant: Value? {
    if case .constant(let value) = self { value } else { nil }
  }
}

struct Computation<Value> {
  /// The columns in SQL.
  let columns: [String]
  /// Computes the value from a row whose columns begin at a position.
  let value: ([SQLValue], Int) throws -> Value

  func map<Result>(_ body: @escaping (Value) throws -> Result) -> Computation<Result> {
    Computation<Result>(columns: columns) { row, start in try body(value(row, start)) }
  }

  func with<Other>(_ other: Computation<Other>) -> Computation<(Value, Other)> {
    Computation<(Value, Other)>(columns: columns + other.columns) { row, start in
      (try value(row, start), try other.value(row, start + columns.count))
    }
  }
}

/// An object in a predicate: the current row, or a row that it refers to.
struct ObjectTerm {
  let entity: ModelEntity
  /// Returns a column in SQL.
  let column: (String) -> String
  /// The parts of the key in SQL.
  let key: [String]
  let isPresent: SQLText

  init(row entity: ModelEntity) throws(BatchError) {
    let table = SQLName.quoted(entity.entity.table)
    self.entity = entity
    column = { "\(table).\(SQLName.quoted($0))" }
    key = try entity.entity.requireKey().columns.map { "\(table).\(SQLName.quoted($0))" }
    isPresent = .true
  }

  /// Any other row.
  init(
    _ entity: ModelEntity,
    key: [String],
    isPresent: SQLText,
    column: @escaping (String) -> String
  ) {
    self.entity = entity
    self.key = key
    self.isPresent = isPresent
    self.column = column
  }
}

struct ObjectsTerm {
  let entity: ModelEntity
  /// The condition that relates their rows, given the name of their table in the statement.
  let isRelated: (String) -> String
  var conditions: [(ObjectTerm) throws(BatchError) -> SQLText] = []
  /// Their unsaved changes, if these count and there are any.
  var unsaved: UnsavedRelated.Rows?
}
