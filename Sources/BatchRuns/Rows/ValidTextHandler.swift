package import BatchIdentifiers

/// Fails rows that have text that is not UTF-8, and passes the other rows to another handler.
package struct ValidTextHandler: RowHandler {
  private let handler: any RowHandler
  /// The number of columns that may be set.
  private let writes: Int

  package init(_ handler: any RowHandler, writes: Int) {
    self.handler = handler
    self.writes = writes
  }

  package func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges {
    let values = rows.values
    var failures: [(row: Int, error: BatchError)] = []
    var valid: [Int] = []
    for row in 0..<rows.count {
      if let column = rows.columns.indices.first(where: { values.isInvalidText(row, $0) }) {
        failures.append((row, .invalidText(in: rows.columns[column])))
      } else {
        valid.append(row)
      }
    }
    let isWhole = failures.isEmpty
    if !isWhole, valid.isEmpty || failures.count > policy.limit {
      // The rest need not be tried.
      var changes = RowChanges(ofRows: rows.count, columns: writes)
      changes.failures = failures
      return changes
    }
    var changes = try handler.changes(
      of: isWhole ? rows : rows.selecting(valid),
      run: run,
      onFailure: policy.after(failures.count),
      holding: byteLimit
    )
    if isWhole { return changes }
    let reached = changes.values.count
    let end = reached < valid.count ? valid[reached] : rows.count
    var places = [Int](repeating: -1, count: end)
    for (place, row) in valid.prefix(reached).enumerated() { places[row] = place }
    changes.values = changes.values.selecting(places)
    changes.failures = changes.failures.map { (valid[$0.row], $0.error) }
    changes.failures += failures.prefix { $0.row < end }
    changes.failures.sort { $0.row < $1.row }
    changes.postponed = changes.postponed.map { (valid[$0.row], $0.error) }
    return changes
  }
}
