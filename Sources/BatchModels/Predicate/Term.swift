import BatchIdentifiers
import BatchStore

/// What an expression of a predicate became.
enum Term<Value> {
  /// A value that is the same for all rows.
  case constant(Value)
  /// SQL that computes the value for a row.
  case sql(SQLText, Representation<Value>)
  /// Swift that computes the value from columns of a row.
  case computed(Computation<Value>)
  /// An object, or nil, of which key paths ask more.
  case object(ObjectTerm)
  /// The objects of a relationship to many.
  case objects(ObjectsTerm)
  /// The identifier of an object, or nil.
  case identifier(ObjectTerm)
}

extension Term {
  /// The same term for a place that takes nil too.
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

/// Swift that computes a value from columns of a row.
struct Computation<Value> {
  /// The SQL of the columns.
  let columns: [String]
  /// The value from a row, in which the columns begin at a position.
  let value: ([SQLValue], Int) throws -> Value

  /// Goes on with the value.
  func map<Result>(_ body: @escaping (Value) throws -> Result) -> Computation<Result> {
    Computation<Result>(columns: columns) { row, start in try body(value(row, start)) }
  }

  /// Goes on with the value and another one.
  func with<Other>(_ other: Computation<Other>) -> Computation<(Value, Other)> {
    Computation<(Value, Other)>(columns: columns + other.columns) { row, start in
      (try value(row, start), try other.value(row, start + columns.count))
    }
  }
}

/// An object that a predicate speaks of: the row itself, or one that the row refers to.
struct ObjectTerm {
  let entity: ModelEntity
  /// The SQL of a column.
  let column: (String) -> String
  /// The SQL of each part of the key.
  let key: [String]
  /// Whether there is an object.
  let isPresent: SQLText

  /// The row that a statement is at.
  init(row entity: ModelEntity) throws(BatchError) {
    let table = SQLName.quoted(entity.entity.table)
    self.entity = entity
    column = { "\(table).\(SQLName.quoted($0))" }
    key = try entity.entity.requireKey().columns.map { "\(table).\(SQLName.quoted($0))" }
    isPresent = .true
  }

  /// A row that is not the one that a statement is at.
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

/// The objects that a row has a relationship to.
struct ObjectsTerm {
  let entity: ModelEntity
  /// What relates a row of theirs, by the name that its table has in the statement.
  let isRelated: (String) -> String
  /// What else must hold of an object.
  var conditions: [(ObjectTerm) throws(BatchError) -> SQLText] = []
  /// What is unsaved of them, if that counts and there is something.
  var unsaved: UnsavedRelated.Rows?
}
