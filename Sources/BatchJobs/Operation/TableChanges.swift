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

    package init(name: String, rows: Int, samples: [Sample]) {
      (self.name, self.rows, self.samples) = (name, rows, samples)
    }
  }

  /// A column's values before and after in a row, in SQL; shortened.
  public struct Sample: Sendable, Hashable, Encodable {
    /// The key of the row.
    public let key: [StoreDifference.Key]
    /// The value before.
    public let before: String
    /// The value after.
    public let after: String

    package init(key: [StoreDifference.Key], before: String, after: String) {
      (self.key, self.before, self.after) = (key, before, after)
    }
  }

  /// An added or removed row.
  public struct Row: Sendable, Hashable, Encodable {
    /// Its key.
    public let key: [StoreDifference.Key]
    /// At most 20 of its values, in SQL; shortened.
    public let values: [Value]

    package init(key: [StoreDifference.Key], values: [Value]) {
      (self.key, self.values) = (key, values)
    }
  }

  /// A column's value.
  public struct Value: Sendable, Hashable, Encodable {
    /// The column.
    public let name: String
    /// Its value.
    public let value: String

    package init(name: String, value: String) {
      (self.name, self.value) = (name, value)
    }
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

  package init(
    table: String,
    changed: Int,
    added: Int,
    removed: Int,
    columns: [Column] = [],
    addedRows: [Row] = [],
    removedRows: [Row] = []
  ) {
    (self.table, self.columns) = (table, columns)
    (self.changed, self.added, self.removed) = (changed, added, removed)
    (self.addedRows, self.removedRows) = (addedRows, removedRows)
  }
}
