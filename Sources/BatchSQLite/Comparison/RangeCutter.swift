import BatchRuns
import BatchIdentifiers

/// Cuts tables into parts, which free workers compare in order.
struct RangeCutter: Sendable {
  struct Part: Sendable {
    let number: Int
    let table: Int
    /// The rowids; nil for all rows.
    let range: ClosedRange<Int64>?
  }

  private let tables: [ComparedTable]
  /// The maximum number of rows per part, in either database.
  private let rowCount: Int
  private var table = 0
  private var first = Int64.min
  private var number = 0

  init(_ tables: [ComparedTable], rowCount: Int) {
    self.tables = tables
    self.rowCount = rowCount
  }

  mutating func next(in connection: Connection) throws(BatchError) -> Part? {
    guard table < tables.count else { return nil }
    number += 1
    guard tables[table].hasRowID else {
      defer { table += 1 }
      return Part(number: number, table: table, range: nil)
    }
    let sql = ComparisonSQL(tables[table])
    var last = Int64.max
    for name in [DatabaseName.database, .file] {
      let query = sql.rowID(after: rowCount, in: name)
      if case .integer(let rowID) = try connection.value(query, .integer(first)) {
        last = min(last, rowID)
      }
    }
    let part = Part(number: number, table: table, range: first...last)
    if last == .max {
      table += 1
      first = .min
    } else {
      first = last + 1
    }
    return part
  }
}
