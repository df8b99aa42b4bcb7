import BatchEngine
import BatchIdentifiers

/// Notices that another connection has changed the columns of the table that a run writes.
///
/// New columns do not affect an update, nor does the loss of one that it does not name. But a renamed column would leave
/// its name to another, and a deletion that keeps copies would lose the values of a new column.
struct ColumnWatch {
  private struct Column: Hashable {
    let name: String
    let type: String
  }

  private let entity: Entity
  /// Whether copies of rows are kept, in an archive or for an undo, and the rows deleted.
  private let keepsCopies: Bool
  /// The columns at the last look; nil before the first if the entity does not have all of them.
  private var columns: [Column]?
  /// SQLite's database version at the last look.
  private var version: Int64?

  init(of change: BulkChange) {
    entity = change.entity
    keepsCopies =
      switch change.action {
      case .delete(let archive): archive != nil || change.undoRun != nil
      default: false
      }
    if entity.kind == .table {
      columns = entity.attributes.map { Column(name: $0.column, type: $0.type) }
    }
  }

  /// Verifies the columns inside a transaction, which keeps others from changing them.
  ///
  /// If no other connection has committed since the last look, there is nothing to read.
  ///
  /// - Throws: `BatchError` of code `otherRun`.
  mutating func verify(in connection: Connection) throws(BatchError) {
    let version = try connection.dataVersion()
    guard version != self.version else { return }
    let rows = try connection.prepare(
      "SELECT name, type FROM pragma_table_xinfo(?, 'main') WHERE hidden <> 1 ORDER BY cid"
    )
    try rows.bind(.text(entity.table), at: 1)
    var now: [Column] = []
    while try rows.step() { now.append(Column(name: rows.text(at: 0), type: rows.text(at: 1))) }
    // New columns come last.
    let left = (columns ?? now).filter { column in now.contains { $0.name == column.name } }
    guard now.starts(with: left) else {
      throw refusal(
        "columns of \"\(entity.name)\" were renamed or got other types since the run began",
        advice: "undo that, or \(.beginAnew)"
      )
    }
    let new = now.dropFirst(left.count).map(\.name)
    guard new.isEmpty || !keepsCopies else {
      throw refusal(
        "\"\(entity.name)\" has got \(new.joined(separator: ", ")) since the run began, whose values would be"
          + " deleted without a copy",
        advice: "add them to the archive if there is one, and \(.beginAnew)"
      )
    }
    columns = left
    self.version = version
  }

  private func refusal(_ message: String, advice: Remedy) -> BatchError {
    BatchError(.otherRun, message, at: entity.table, advice: advice)
  }
}
