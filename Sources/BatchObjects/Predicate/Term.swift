import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The translation of a predicate's expression.
enum Term<Value> {
  /// A value that is the same for all rows.
  case constant(Value)
  /// SQL that computes the value for a row.
  case sql(SQLText, Representation<Value>)
  /// A Swift closure that computes the value from a row's columns.
  case computed(Computation<Value>)
  /// An object, or nil, which key paths continue from.
  case object(ObjectTerm)
  /// The objects of a to-many relationship.
  case objects(ObjectsTerm)
  /// The identifier of an object, or nil.
  case identifier(ObjectTerm)
}

extension Term {
  /// The same term where nil is allowed too.
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

  /// The value, if it is the same for all rows.
  var constant: Value? {
    if case .constant(let value) = self { value } else { nil }
  }
}

/// A Swift closure that computes a value from a row's columns.
struct Computation<Value> {
  /// The SQL of the columns.
  let columns: [String]
  /// The value from a row whose columns begin at a position.
  let value: ([SQLValue], Int) throws -> Value

  /// Transforms the value.
  func map<Result>(_ body: @escaping (Value) throws -> Result) -> Computation<Result> {
    Computation<Result>(columns: columns) { row, start in try body(value(row, start)) }
  }

  /// Combines the value with another one.
  func with<Other>(_ other: Computation<Other>) -> Computation<(Value, Other)> {
    Computation<(Value, Other)>(columns: columns + other.columns) { row, start in
      (try value(row, start), try other.value(row, start + columns.count))
    }
  }
}

/// An object in a predicate: the row itself, or one that the row refers to.
struct ObjectTerm {
  let entity: ModelEntity
  /// The SQL of a column.
  let column: (String) -> String
  /// The SQL of each part of the key.
  let key: [String]
  /// Whether there is an object.
  let isPresent: SQLText

  /// The statement's current row.
  init(row entity: ModelEntity) throws(BatchError) {
    let table = SQLName.quoted(entity.entity.table)
    self.entity = entity
    column = { "\(table).\(SQLName.quoted($0))" }
    key = try entity.entity.requireKey().columns.map { "\(table).\(SQLName.quoted($0))" }
    isPresent = .true
  }

  /// A row other than the statement's current one.
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

/// The objects to which a row has a relationship.
struct ObjectsTerm {
  let entity: ModelEntity
  /// The condition that relates their rows, by their table's name in the statement.
  let isRelated: (String) -> String
  /// Further conditions on an object.
  var conditions: [(ObjectTerm) throws(BatchError) -> SQLText] = []
  /// Their unsaved changes, if those count and there are any.
  var unsaved: UnsavedRelated.Rows?
}
