public import BatchStore
public import SystemPackage

extension Job {
  /// What a job does to its rows.
  ///
  /// More actions come in later versions, so a `switch` needs a `default`.
  public enum Action: Hashable, Sendable {
    /// Sets columns to the values of SQL expressions.
    case update(Update)
    /// Deletes rows, with or without a copy in an archive.
    case delete(Delete)
    /// Writes rows to a file.
    case export(Export)

    /// The name of the action in a job file.
    public var type: String {
      switch self {
      case .update: "update"
      case .delete: "delete"
      case .export: "export"
      }
    }

    /// Whether the action changes the database.
    public var writes: Bool {
      switch self {
      case .update, .delete: true
      case .export: false
      }
    }
  }

  /// The action that sets columns.
  public struct Update: Hashable, Sendable {
    /// What is set to what, in the order of the job file.
    public var set: [Assignment]

    /// Makes an update.
    public init(set: [Assignment]) {
      self.set = set
    }
  }

  /// A column and the expression for its new value.
  public struct Assignment: Hashable, Sendable {
    /// The column that is set.
    public var column: String
    /// The SQL expression, over the row as it was before and the parameters.
    public var expression: String

    /// Makes an assignment.
    public init(_ column: String, to expression: String) {
      self.column = column
      self.expression = expression
    }
  }

  /// The action that deletes rows.
  public struct Delete: Hashable, Sendable {
    /// The entity that gets a copy of each row, in the transaction that deletes it.
    public var archive: String?

    /// Makes a delete.
    public init(archive: String? = nil) {
      self.archive = archive
    }
  }

  /// The action that writes rows to a file.
  public struct Export: Hashable, Sendable {
    /// The file that is written.
    public var file: FilePath
    /// The form of the file.
    public var format: RowFormat
    /// The columns that are written, in this order; all of them if nil.
    public var columns: [String]?
    /// Whether a file that the job did not make may be replaced.
    public var overwrite: Bool

    /// Makes an export.
    public init(
      file: FilePath,
      format: RowFormat,
      columns: [String]? = nil,
      overwrite: Bool = false
    ) {
      self.file = file
      self.format = format
      self.columns = columns
      self.overwrite = overwrite
    }
  }
}
