/// A piece of SQL that is one operand.
package struct SQLText {
  package let text: String
  /// Whether it may fail for some rows, so that it must only be computed where Swift would compute
  /// it.
  package let canFail: Bool
  /// The same operand as the condition for not being NULL, and its value then.
  package private(set) var guarded: (condition: String, value: String)?
  /// The same operand as a column minus a number.
  package private(set) var difference: (column: String, less: Double)?
  /// The conditions that this joins, and whether all of them or any must be true.
  private var joined: (isAll: Bool, conditions: [SQLText])?

  package init(_ text: String, canFail: Bool = false) {
    self.text = text
    self.canFail = canFail
  }

  /// A value where a condition is true, otherwise NULL.
  package init(_ value: SQLText, where condition: SQLText) {
    text = "CASE WHEN \(condition.text) THEN \(value.text) END"
    canFail = value.canFail || condition.canFail
    if !canFail { guarded = (condition.text, value.text) }
  }

  /// A column minus a number.
  package init(_ column: String, less number: Double) {
    self.init("(\(column) - \(number))")
    difference = (column, number)
  }

  package static let `true` = SQLText("1")
  package static let `false` = SQLText("0")

  private var isTrue: Bool { text == Self.true.text }
  private var isFalse: Bool { text == Self.false.text }

  /// Whether both are true; the second is computed only if the first is.
  ///
  /// Here and below, constants are dropped: SQLite uses no index for `0 OR …`.
  package static func and(_ left: SQLText, _ right: SQLText) -> SQLText {
    if left.isTrue || right.isFalse && !left.canFail { return right }
    if left.isFalse || right.isTrue { return left }
    return joining(left, right, all: true)
  }

  /// Whether all are true.
  package static func all(_ conditions: [SQLText]) -> SQLText {
    combined(conditions[...], .true, and)
  }

  /// Whether any is true.
  package static func any(_ conditions: [SQLText]) -> SQLText {
    combined(conditions[...], .false, or)
  }

  /// Combines a few operands in a list, where SQLite finds those that an index serves, but many in
  /// halves: it refuses expressions that are more than 1,000 deep.
  private static func combined(
    _ conditions: ArraySlice<SQLText>,
    _ none: SQLText,
    _ combine: (SQLText, SQLText) -> SQLText
  ) -> SQLText {
    if conditions.count <= 32 {
      return conditions.dropFirst().reduce(conditions.first ?? none, combine)
    }
    let middle = conditions.startIndex + conditions.count / 2
    return combine(
      combined(conditions[..<middle], none, combine),
      combined(conditions[middle...], none, combine)
    )
  }

  /// Whether one is true; the second is computed only if the first is not.
  package static func or(_ left: SQLText, _ right: SQLText) -> SQLText {
    if left.isFalse || right.isTrue && !left.canFail { return right }
    if left.isTrue || right.isFalse { return left }
    return joining(left, right, all: false)
  }

  /// Whether it is false.
  package var negated: SQLText {
    if isTrue { return .false }
    return isFalse ? .true : SQLText("(NOT \(text))", canFail: canFail)
  }

  // MARK: Many conditions

  /// Joins two conditions, with those that either joins in the same way, in one list.
  ///
  /// SQLite's parser allows some twenty levels of nested parentheses and CASEs, depending on its
  /// version, and a list of any length.
  private static func joining(_ left: SQLText, _ right: SQLText, all isAll: Bool) -> SQLText {
    let conditions = left.conditions(all: isAll) + right.conditions(all: isAll)
    // A list of operators is as deep as it is long; SQLite's limit is 1,000.
    return SQLText(conditions.count <= 32 ? conditions : [left, right], all: isAll)
  }

  private func conditions(all isAll: Bool) -> [SQLText] {
    if let joined, joined.isAll == isAll { joined.conditions } else { [self] }
  }

  private init(_ conditions: [SQLText], all isAll: Bool) {
    let texts = conditions.map(\.text)
    let firstToFail = conditions.firstIndex(where: \.canFail)
    var operands = texts
    if let firstToFail {
      // In order, and only as far as needed.
      let tests = texts.dropLast().map { text in
        isAll ? "WHEN \(text) IS NOT TRUE THEN 0" : "WHEN \(text) THEN 1"
      }
      let inOrder = "CASE \(tests.joined(separator: " ")) ELSE \(texts[texts.count - 1]) END"
      // SQLite can use an index for those before it, if they are separate operands.
      operands = (isAll ? Array(texts[..<firstToFail]) : []) + [inOrder]
    }
    text = "(\(operands.joined(separator: isAll ? " AND " : " OR ")))"
    canFail = firstToFail != nil
    joined = (isAll, conditions)
  }
}
