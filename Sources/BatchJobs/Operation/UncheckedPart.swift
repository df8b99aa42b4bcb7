import BatchIdentifiers

/// A column, or all rows, of a table that may differ without being checked.
public struct UncheckedPart: Sendable, Hashable, Encodable {
  /// The table.
  public let table: String
  /// The column; nil for whole rows.
  public let column: String?
  /// Why it is not checked, in a clause.
  public let because: String
  /// The number of rows that differ there.
  public let rows: Int

  package init(_ table: String, _ column: String? = nil, because: String, rows: Int = 0) {
    self.table = table
    self.column = column
    self.because = because
    self.rows = rows
  }

  /// The reason of a column that a program has set.
  package static let ofProgram = "a program wrote it"

  /// The reason of a part that a person has allowed to differ.
  package static let allowed = "it was allowed to differ"
}

/// A table that two databases have and whose rows cannot be compared, such as one with a collation
/// that only an application defines.
package struct UncomparedTable: Sendable, Hashable, Encodable {
  package let table: String
  /// The reason, in a clause.
  package let reason: String

  package init(table: String, reason: String) {
    self.table = table
    self.reason = reason
  }

  package var note: String {
    "the rows of \(table.quotedForMessage) were not compared: \(reason)"
  }
}
