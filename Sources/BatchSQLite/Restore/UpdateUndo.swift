package import BatchRuns
package import BatchIdentifiers

package struct UpdateUndo: RowHandler {
  private let log: UndoLog<UndoRecord>
  private let overwrites: Bool

  package init(_ log: UndoLog<UndoRecord>, overwriting overwrites: Bool) {
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
    var changes = RowChanges(ofRows: rows.count, columns: columns.count)
    let places = (0..<rows.count).map { rows.position(of: $0) }
    try log.forEachRow(at: places) { index, record, row throws(BatchError) in
      func isSame(_ values: ValueBlock) -> Bool {
        rows.values.isSame(index, as: values, row, columns: columns.count)
      }
      if isSame(record.before) { return }
      guard overwrites || isSame(record.after) else {
        let error = log.changed(record, row, to: rows.values, index)
        return changes.failures.append((index, error))
      }
      try changes.values.set(index, from: record.before, row)
    }
    return changes
  }
}

extension UndoLog where Record == UndoRecord {
  /// The error of a row that is neither as the run left it nor as it was before.
  fileprivate func changed(
    _ record: UndoRecord,
    _ row: Int,
    to current: ValueBlock,
    _ currentRow: Int
  ) -> BatchError {
    let differences = undo.shape.columns.indices.compactMap { column -> String? in
      if current.isSame(currentRow, column, as: record.after, row) { return nil }
      return "\(undo.shape.columns[column].quotedForMessage) is"
        + " \(current.value(currentRow, column).forMessage), the run had set"
        + " \(record.after.value(row, column).forMessage), and before it was"
        + " \(record.before.value(row, column).forMessage)"
    }
    return BatchError(
      .changedSince,
      "somebody has changed the row since: \(differences.joined(separator: "; "))",
      remedy: "use --overwrite to undo it anyway"
    )
  }

  /// The error of a deleted row whose key was reused.
  func changed(
    _ deleted: ValueBlock,
    _ row: Int,
    _ keyCount: Int,
    to current: ValueBlock,
    _ currentRow: Int,
    _ columns: [String]
  ) -> BatchError {
    let differences = columns.indices.compactMap { column -> String? in
      if current.isSame(currentRow, column, as: deleted, row) { return nil }
      return
        "\(columns[column].quotedForMessage) is \(current.value(currentRow, column).forMessage)"
        + " and was \(deleted.value(row, column).forMessage)"
    }
    return BatchError(
      .changedSince,
      "a row with the key exists again: \(differences.joined(separator: "; "))",
      remedy: "use --overwrite to give it the values of the deleted one"
    )
  }
}

extension SQLValue {
  /// The value on one line, without its middle if it is long.
  var forMessage: String {
    let text = sql.onOneLine
    return text.count <= 80 ? text : "\(text.prefix(60))…\(text.suffix(10))"
  }
}
