import BatchRuns
package import BatchIdentifiers

extension Connection {
  /// Whether a table of batch exists.
  ///
  /// - Parameters:
  ///   - table: Its name.
  ///   - columns: Columns that this version needs.
  /// - Returns: Whether it exists.
  /// - Throws: `BatchError` of code `unsupportedVersion` if it lacks some of them: an earlier version has made it.
  package func hasOwnTable(_ table: String, with columns: [String]) throws(BatchError) -> Bool {
    let present = try texts("SELECT name FROM pragma_table_info(?)", .text(table))
    if columns.allSatisfy(present.contains) { return true }
    if present.isEmpty { return false }
    throw BatchError(
      .unsupportedVersion,
      "an earlier version of batch has made the table \(table)",
      remedy:
        "finish its runs with that version, then drop the tables whose names begin with _batch_"
    )
  }
}
