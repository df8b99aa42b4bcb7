/// Something that two databases do not have alike.
public struct StoreDifference: Sendable, Hashable, Encodable {
  /// What kind of difference it is, as JSON has it.
  public enum Kind: String, Sendable, Encodable, CaseIterable {
    /// A row has other values.
    case changed
    /// A row is in the database only.
    case added
    /// A row is in the other file only.
    case removed
    /// A table, index, trigger or view was made in another way, or is in one of the two only.
    case schema
  }

  /// A column of a row's key, with its value as SQL writes it.
  public struct Key: Sendable, Hashable, Encodable {
    /// The column, or `rowid`.
    public let name: String
    /// What both have there; shortened.
    public let value: String
  }

  /// What a column has in a row, as SQL writes it, so that its type shows; shortened.
  public struct Column: Sendable, Hashable, Encodable {
    /// The column.
    public let name: String
    /// Its value in the other file.
    public let file: String
    /// Its value in the database.
    public let database: String
  }

  /// What kind of difference it is.
  public let kind: Kind
  /// The table, or the one that an index or a trigger belongs to.
  public let table: String
  /// The key of the row, in the order of its columns; empty for what is no row.
  public let key: [Key]
  /// The columns that differ, 20 at most; of rows that are in both only.
  public let columns: [Column]
  /// What is different, in words, of what is no row.
  public let detail: String?

  init(
    _ kind: Kind,
    _ table: String,
    key: [Key] = [],
    columns: [Column] = [],
    detail: String? = nil
  ) {
    self.kind = kind
    self.table = table
    self.key = key
    self.columns = columns
    self.detail = detail
  }

  /// The most columns that are reported for a row.
  static let columnLimit = 20
}
