import BatchIdentifiers

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

/// A piece of SQL that stands as one operand.
struct SQLText {
  let text: String
  /// Whether there are rows for which it fails, so that it must not be computed for rows for which
  /// Swift would not compute it.
  let canFail: Bool
  /// The same thing as what must hold for it not to be NULL, and what it is then.
  private(set) var guarded: (condition: String, value: String)?

  init(_ text: String, canFail: Bool = false) {
    self.text = text
    self.canFail = canFail
  }

  /// A value where a condition holds, and NULL elsewhere.
  init(_ value: SQLText, where condition: SQLText) {
    text = "CASE WHEN \(condition.text) THEN \(value.text) END"
    canFail = value.canFail || condition.canFail
    if !canFail { guarded = (condition.text, value.text) }
  }

  static let `true` = SQLText("1")
  static let `false` = SQLText("0")

  private var isTrue: Bool { text == Self.true.text }
  private var isFalse: Bool { text == Self.false.text }

  /// Whether both are true; the second is computed only where the first is.
  ///
  /// What is known is left out, here and below: SQLite looks nothing up in an index for `0 OR …`.
  static func and(_ left: SQLText, _ right: SQLText) -> SQLText {
    if left.isTrue || right.isFalse && !left.canFail { return right }
    if left.isFalse || right.isTrue { return left }
    if left.canFail || right.canFail {
      let both = "CASE WHEN \(left.text) THEN \(right.text) ELSE 0 END"
      // SQLite can look the first one up in an index, if it stands alone.
      return SQLText(left.canFail ? "(\(both))" : "(\(left.text) AND \(both))", canFail: true)
    }
    return SQLText("(\(left.text) AND \(right.text))")
  }

  /// Whether all are true.
  static func all(_ conditions: [SQLText]) -> SQLText {
    conditions.dropFirst().reduce(conditions.first ?? .true) { .and($0, $1) }
  }

  /// Whether one is true; the second is computed only where the first is not.
  static func or(_ left: SQLText, _ right: SQLText) -> SQLText {
    if left.isFalse || right.isTrue && !left.canFail { return right }
    if left.isTrue || right.isFalse { return left }
    if left.canFail || right.canFail {
      return SQLText("(CASE WHEN \(left.text) THEN 1 ELSE \(right.text) END)", canFail: true)
    }
    return SQLText("(\(left.text) OR \(right.text))")
  }

  /// Whether it is false.
  var negated: SQLText {
    if isTrue { return .false }
    return isFalse ? .true : SQLText("(NOT \(text))", canFail: canFail)
  }
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
}
