/// A piece of SQL that stands as one operand.
package struct SQLText {
  package let text: String
  /// Whether there are rows for which it fails, so that it must not be computed for rows for which
  /// Swift would not compute it.
  package let canFail: Bool
  /// The same thing as what must hold for it not to be NULL, and what it is then.
  package private(set) var guarded: (condition: String, value: String)?
  /// The same thing as a column less a number.
  package private(set) var difference: (column: String, less: Double)?

  package init(_ text: String, canFail: Bool = false) {
    self.text = text
    self.canFail = canFail
  }

  /// A value where a condition holds, and NULL elsewhere.
  package init(_ value: SQLText, where condition: SQLText) {
    text = "CASE WHEN \(condition.text) THEN \(value.text) END"
    canFail = value.canFail || condition.canFail
    if !canFail { guarded = (condition.text, value.text) }
  }

  /// What is left of a column's number without another one.
  package init(_ column: String, less number: Double) {
    self.init("(\(column) - \(number))")
    difference = (column, number)
  }

  package static let `true` = SQLText("1")
  package static let `false` = SQLText("0")

  private var isTrue: Bool { text == Self.true.text }
  private var isFalse: Bool { text == Self.false.text }

  /// Whether both are true; the second is computed only where the first is.
  ///
  /// What is known is left out, here and below: SQLite looks nothing up in an index for `0 OR …`.
  package static func and(_ left: SQLText, _ right: SQLText) -> SQLText {
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
  package static func all(_ conditions: [SQLText]) -> SQLText {
    combined(conditions[...], .true, and)
  }

  /// Whether any is true.
  package static func any(_ conditions: [SQLText]) -> SQLText {
    combined(conditions[...], .false, or)
  }

  /// Combines one after the other, in which SQLite finds what an index serves, but many in halves:
  /// it refuses expressions that are more than 1,000 deep.
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

  /// Whether one is true; the second is computed only where the first is not.
  package static func or(_ left: SQLText, _ right: SQLText) -> SQLText {
    if left.isFalse || right.isTrue && !left.canFail { return right }
    if left.isTrue || right.isFalse { return left }
    if left.canFail || right.canFail {
      return SQLText("(CASE WHEN \(left.text) THEN 1 ELSE \(right.text) END)", canFail: true)
    }
    return SQLText("(\(left.text) OR \(right.text))")
  }

  /// Whether it is false.
  package var negated: SQLText {
    if isTrue { return .false }
    return isFalse ? .true : SQLText("(NOT \(text))", canFail: canFail)
  }
}
