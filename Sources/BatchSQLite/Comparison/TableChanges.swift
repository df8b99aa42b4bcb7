public import BatchJobs

/// The changes in a table, by row and column.
public struct TableChanges: Sendable, Hashable, Encodable {
  /// The number of rows in which a column has changed, with the first of them.
  public struct Column: Sendable, Hashable, Encodable {
    /// The column.
    public let name: String
    /// The number of rows with another value.
    public let rows: Int
    /// Values before and after in the first of them.
    public let samples: [Sample]
  }

  /// A column's values before and after in a row, in SQL; shortened.
  public struct Sample: Sendable, Hashable, Encodable {
    /// The key of the row.
    public let key: [StoreDifference.Key]
    /// The value before.
    public let before: String
    /// The value after.
    public let after: String
  }

  /// An added or removed row.
  public struct Row: Sendable, Hashable, Encodable {
    /// Its key.
    public let key: [StoreDifference.Key]
    /// At most 20 of its values, in SQL; shortened.
    public let values: [Value]
  }

  /// A column's value.
  public struct Value: Sendable, Hashable, Encodable {
    /// The column.
    public let name: String
    /// Its value.
    public let value: String
  }

  /// The table.
  public let table: String
  /// The number of changed rows.
  public let changed: Int
  /// The number of added rows.
  public let added: Int
  /// The number of removed rows.
  public let removed: Int
  /// The changed columns, in the table's order.
  public let columns: [Column]
  /// The first added rows.
  public let addedRows: [Row]
  /// The first removed rows.
  public let removedRows: [Row]

  static func all(
    _ tables: [ComparedTable],
    _ tally: ComparisonTally,
    samples: Int
  ) -> [TableChanges] {
    let found = Dictionary(grouping: tally.differences.map(\.difference), by: \.table)
    return tables.enumerated().compactMap { index, table in
      guard let counts = tally.tables[index], counts.different > 0 else { return nil }
      return TableChanges(table, counts, found[table.name] ?? [], samples: samples)
    }
  }

  private init(
    _ table: ComparedTable,
    _ tally: ComparisonTally.Table,
    _ found: [StoreDifference],
    samples: Int
  ) {
    self.table = table.name
    changed = tally.counts[.changed, default: 0]
    added = tally.counts[.added, default: 0]
    removed = tally.counts[.removed, default: 0]
    var first: [String: [Sample]] = [:]
    for row in found where row.kind == .changed {
      for column in row.columns where first[column.name, default: []].count < samples {
        first[column.name, default: []].append(
          Sample(key: row.key, before: column.file, after: column.database)
        )
      }
    }
    columns = zip(table.columns, tally.columns).filter { $0.1 > 0 }.map { name, rows in
      Column(name: name, rows: rows, samples: first[name] ?? [])
    }
    addedRows = found.filter { $0.kind == .added }.prefix(samples).map { row in
      Row(key: row.key, values: row.columns.map { Value(name: $0.name, value: $0.database) })
    }
    removedRows = found.filter { $0.kind == .removed }.prefix(samples).map { row in
      Row(key: row.key, values: row.columns.map { Value(name: $0.name, value: $0.file) })
    }
  }
}
