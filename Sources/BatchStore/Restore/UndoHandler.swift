package import BatchEngine
public import BatchIdentifiers

/// Gives rows the values back that a run has replaced.
package struct UndoHandler: RowHandler {
  private let log: UndoLog
  /// Whether rows that somebody has changed since are given them too.
  private let overwrites: Bool

  package init(_ log: UndoLog, overwriting overwrites: Bool) {
    self.log = log
    self.overwrites = overwrites
  }

  package func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges {
    let columns = log.undo.shape.columns
    var changes = RowChanges(
      values: ValueBlock(
        columns: columns.count,
        capacity: rows.count,
        count: rows.count,
        filledWith: .unset
      )
    )
    let places = (0..<rows.count).map { rows.position(of: $0) }
    try log.forEachRow(at: places) { index, record, row throws(BatchError) in
      func isSame(_ values: ValueBlock) -> Bool {
        columns.indices.allSatisfy { rows.values.isSame(index, $0, as: values, row) }
      }
      if isSame(record.before) { return }
      guard overwrites || isSame(record.after) else {
        return changes.failures.append((index, log.changed(record, row, to: rows.values, index)))
      }
      try changes.values.set(index, from: record.before, row)
    }
    return changes
  }
}

extension UndoLog {
  /// The error for a row that is neither as the run has left it nor as it was before.
  func changed(
    _ record: UndoRecord,
    _ row: Int,
    to current: ValueBlock,
    _ currentRow: Int
  ) -> BatchError {
    let differences = undo.shape.columns.enumerated().compactMap { column, name -> String? in
      guard !current.isSame(currentRow, column, as: record.before, row) else { return nil }
      let now = current.value(currentRow, column).sql.shortened
      let before = record.before.value(row, column).sql.shortened
      return "\(name.quotedForMessage) is \(now) and was \(before)"
    }
    return BatchError(
      .changedSince,
      "somebody has changed the row since: \(differences.joined(separator: ", "))",
      remedy: "with --overwrite it is undone all the same"
    )
  }
}

extension String {
  /// The text with its middle left out if it is long.
  fileprivate var shortened: String {
    count <= 80 ? self : "\(prefix(60))…\(suffix(10))"
  }
}

extension BatchError.Code {
  /// A row is not as the run has left it that is to be undone.
  public static let changedSince = Self(rawValue: "changedSince")
}
