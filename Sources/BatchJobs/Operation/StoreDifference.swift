/// A difference between two databases.
public struct StoreDifference: Sendable, Hashable, Encodable {
  /// The kind of difference, as in JSON.
  public enum Kind: String, Sendable, Encodable, CaseIterable {
    /// A row has other values.
    case changed
    /// A row is only in the database.
    case added
    /// A row is only in the other file.
    case removed
    /// A row is in another state than what its run has recorded of it.
    case outcome
    /// A table, index, trigger or view differs, or is only in one of the two.
    case schema
  }

  /// A column of a row's key, with its value as SQL writes it.
  public struct Key: Sendable, Hashable, Encodable {
    /// The column, or `rowid`.
    public let name: String
    /// Its value in both; shortened.
    public let value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The values of a column in a row in SQL, so that types show; shortened.
  public struct Column: Sendable, Hashable, Encodable {
    /// The column.
    public let name: String
    /// Its value in the other file, or the one that the job computes from it.
    public let file: String
    /// Its value in the database.
    public let database: String

    package init(name: String, file: String, database: String) {
      self.name = name
      self.file = file
      self.database = database
    }
  }

  /// The kind of difference.
  public let kind: Kind
  /// The table, or the table of an index or trigger.
  public let table: String
  /// The key of the row, in column order; empty for differences of the schema.
  public let key: [Key]
  /// At most 20 columns that differ; only for rows in both.
  public let columns: [Column]
  /// The difference in words, for differences of the schema and of outcomes.
  public let detail: String?

  package init(
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

  package static let columnLimit = 20
}
