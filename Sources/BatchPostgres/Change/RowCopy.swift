#if PostgreSQL
import BatchIdentifiers

/// A copy of changed rows in another table, made by the statement that changes them.
struct RowCopy: Sendable {
  /// The table that gets the copies, as SQL.
  let table: String
  /// The values that the change returns for the copy, and the names of their columns.
  let returned: [(value: String, column: String)]
  /// What happens to the rows, for error messages: `archived`, `recorded`.
  let action: String

  /// The statement that changes rows, copies them, and selects something for each or for all of
  /// them, followed by the number of rows of each copy.
  ///
  /// - Parameters:
  ///   - change: The change, without `RETURNING`.
  ///   - number: The value that is the number of a row's key; nil to select the number of rows.
  ///   - copies: The copies to make.
  /// - Returns: The statement.
  static func sql(_ change: String, numbering number: String?, _ copies: [RowCopy]) -> String {
    var values: [String] = []
    var names: Set<String> = []
    if let number { values.append("\(number) AS \(Self.number)") }
    for (value, column) in copies.flatMap(\.returned) where names.insert(column).inserted {
      values.append("\(value) AS \(PostgresName.quoted(column))")
    }
    var steps = ["changed AS (\(change) RETURNING \(values.joined(separator: ", ")))"]
    var selected = [number == nil ? "count(*)" : Self.number]
    for (index, copy) in copies.enumerated() {
      let columns = PostgresName.list(copy.returned.map(\.column))
      // An identity column keeps its values in the copy.
      steps.append(
        "kept_\(index) AS (INSERT INTO \(copy.table) (\(columns)) OVERRIDING SYSTEM VALUE"
          + " SELECT \(columns) FROM changed RETURNING 1)"
      )
      selected.append("(SELECT count(*) FROM kept_\(index))")
    }
    return
      "WITH \(steps.joined(separator: ", ")) SELECT \(selected.joined(separator: ", ")) FROM changed"
  }

  private static let number = "\"_batch_number\""

  /// Refuses a chunk of which not all changed rows were copied, by the answer to
  /// ``sql(_:numbering:_:)``.
  static func require(
    _ copies: [RowCopy],
    of count: Int,
    in answer: PostgresResult
  ) throws(BatchError) {
    guard answer.count > 0 else { return }
    for (index, copy) in copies.enumerated() {
      let copied = Int(answer.integer(0, index + 1) ?? 0)
      if copied == count { continue }
      throw BatchError(
        .constraint,
        "\(copied.grouped) rows were \(copy.action) but \(count.grouped) would be changed",
        remedy: "a trigger or a rule keeps rows out of \(copy.table); nothing was changed"
      )
    }
  }
}
#endif
