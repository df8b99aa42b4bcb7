import BatchRuns
package import BatchIdentifiers

extension Connection {
  /// Whether one of this library's own tables exists with the columns that this version needs.
  ///
  /// - Throws: `BatchError` of code `unsupportedVersion` if an earlier version made the table and
  ///   it lacks some of them.
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
