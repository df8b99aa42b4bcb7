package struct SQLText {
  package let text: String
  /// Whether it may fail for some rows, so that SQL must compute it only where Swift would.
  package let canFail: Bool
  /// The same operand, split into the condition for not being NULL and the value in that case.
  package private(set) var guarded: (condition: String, value: String)?
  package private(set) var difference: (column: String, less: Double)?
  /// The conditions that this operand joins, by AND if `isAll`, otherwise by OR.
  private var joined: (isAll: Bool, conditions: [SQLText])?

  package init(_ text: String, canFail: Bool = false) {
    self.text = text
    self.canFail = canFail
  }

  /// The value if a condition is true, otherwise NULL.
  package init(_ value: SQLText, where condition: SQLText) {
    text = "CASE WHEN \(condition.text) THEN \(value.text) END"
    canFail = value.canFail || condition.canFail
    if !canFail { guarded = (condition.text, value.text) }
  }

  package init(_ column: String, less number: Double) {
    self.init("(\(column) - \(number))")
    difference = (column, number)
  }

  package static let `true` = SQLText("1")
  package static let `false` = SQLText("0")

  private var isTrue: Bool { text == Self.true.text }
  private var isFalse: Bool { text == Self.false.text }

  /// Joins by AND; the second condition is computed only if the first is true.
  ///
  /// Here and below, constants are dropped, because SQLite uses no index for `0 OR …`.
  package static func and(_ left: SQLText, _ right: SQLText) -> SQLText {
    if left.isTrue || right.isFalse && !left.canFail { return right }
    if left.isFalse || right.isTrue { return left }
    return joining(left, right, all: true)
  }

  package static func all(_ conditions: [SQLText]) -> SQLText {
    combined(conditions[...], .true, and)
  }

  package static func any(_ conditions: [SQLText]) -> SQLText {
    combined(conditions[...], .false, or)
  }

  /// Combines a few operands in a list, where SQLite finds those that an index serves; combines
  /// many in halves, because SQLite refuses expressions deeper than 1,000.
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

  /// Joins by OR; the second condition is computed only if the first is not true.
  package static func or(_ left: SQLText, _ right: SQLText) -> SQLText {
    if left.isFalse || right.isTrue && !left.canFail { return right }
    if left.isTrue || right.isFalse { return left }
    return joining(left, right, all: false)
  }

  package var negated: SQLText {
    if isTrue { return .false }
    return isFalse ? .true : SQLText("(NOT \(text))", canFail: canFail)
  }

  // MARK: Many conditions

  /// Joins two conditions in one list, together with the conditions that either already joins in
  /// the same way.
  ///
  /// SQLite's parser allows about twenty levels of nested parentheses and CASEs, depending on its
  /// version, but a list of any length.
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
      // Evaluates in order, and only as far as needed.
      let tests = texts.dropLast().map { text in
        isAll ? "WHEN \(text) IS NOT TRUE THEN 0" : "WHEN \(text) THEN 1"
      }
      let inOrder = "CASE \(tests.joined(separator: " ")) ELSE \(texts[texts.count - 1]) END"
      // Operands before it stay separate, so that SQLite can use an index for them.
      operands = (isAll ? Array(texts[..<firstToFail]) : []) + [inOrder]
    }
    text = "(\(operands.joined(separator: isAll ? " AND " : " OR ")))"
    canFail = firstToFail != nil
    joined = (isAll, conditions)
  }
}
