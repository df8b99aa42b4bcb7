public import BatchRuns
public import SystemPackage

extension Job {
  /// What a job does to its rows.
  ///
  /// Later versions may add actions, so a `switch` needs a `default`.
  public enum Action: Hashable, Sendable {
    /// Sets columns to the values of SQL expressions.
    case update(Update)
    /// Deletes rows, with or without a copy in an archive.
    case delete(Delete)
    /// Writes rows to a file.
    case export(Export)
    /// Sets columns to what a program computes.
    case transform(Transform)

    /// The name of the action in a job file.
    public var type: String {
      switch self {
      case .update: "update"
      case .delete: "delete"
      case .export: "export"
      case .transform: "transform"
      }
    }

    /// The time limit of external code for a chunk; nil if none is called.
    package var handlerTimeLimit: Duration? {
      if case .transform(let transform) = self { transform.timeout } else { nil }
    }

    /// Whether the action changes the database.
    public var writes: Bool {
      switch self {
      case .update, .delete, .transform: true
      case .export: false
      }
    }
  }

  /// The action that sets columns.
  public struct Update: Hashable, Sendable {
    /// The columns to set and their expressions, in the order of the job file.
    public var set: [Assignment]
    /// What to do with a row that already has the new values.
    public var unchanged: Unchanged

    /// Makes an update.
    public init(set: [Assignment], unchanged: Unchanged = .write) {
      self.set = set
      self.unchanged = unchanged
    }
  }

  /// What to do with a row that already has the new values of an update.
  public enum Unchanged: String, CaseIterable, Hashable, Sendable {
    /// It is written like others, and its triggers run.
    case write
    /// It is left alone, and counts as unchanged.
    case skip
  }

  /// A column and the expression for its new value.
  public struct Assignment: Hashable, Sendable {
    /// The column to set.
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
    /// Whether to create a missing archive, like the table that rows are deleted from.
    public var createsArchive: Bool

    /// Makes a delete.
    public init(archive: String? = nil, createsArchive: Bool = false) {
      self.archive = archive
      self.createsArchive = createsArchive
    }
  }

  /// The action that writes rows to a file.
  public struct Export: Hashable, Sendable {
    /// The file to write; of an export to parts the folder of its files.
    public var file: FilePath
    /// The format of the file.
    public var format: RowFormat
    /// The columns to write, in this order; nil for all.
    public var columns: [String]?
    /// Whether a file that the job did not make may be replaced.
    public var overwrite: Bool
    /// Whether any number of hosts write files of their own into a folder, with a manifest that names them in their
    /// order; on PostgreSQL only.
    public var isInParts: Bool
    /// What is written for a text that is not UTF-8.
    public var invalidText: InvalidText

    /// Makes an export.
    public init(
      file: FilePath,
      format: RowFormat,
      columns: [String]? = nil,
      overwrite: Bool = false,
      isInParts: Bool = false,
      invalidText: InvalidText = .replace
    ) {
      self.file = file
      self.format = format
      self.columns = columns
      self.overwrite = overwrite
      self.isInParts = isInParts
      self.invalidText = invalidText
    }
  }

  /// The action that sets columns to what a program computes.
  public struct Transform: Hashable, Sendable {
    /// What computes the values.
    public enum Program: Hashable, Sendable {
      /// A handler that the Swift program has registered by this name.
      case handler(String)
      /// A command with its arguments, which reads rows and writes changes, one JSON object per line.
      case command([String])
    }

    /// What happens to a text that is not UTF-8.
    public enum InvalidText: String, CaseIterable, Hashable, Sendable {
      /// A command gets its bytes in Base64, a handler as bytes.
      case base64
      /// Its row fails.
      case fail
    }

    /// The only columns to read.
    public var columns: [String]
    /// The columns that may be written.
    public var writes: [String]
    /// What computes the values.
    public var program: Program
    /// How long the rows of a chunk may take.
    public var timeout: Duration
    /// What happens to a text that is not UTF-8.
    public var invalidText: InvalidText

    /// Makes a transform.
    public init(
      columns: [String],
      writes: [String],
      program: Program,
      timeout: Duration = .seconds(60),
      invalidText: InvalidText = .base64
    ) {
      self.columns = columns
      self.writes = writes
      self.program = program
      self.timeout = timeout
      self.invalidText = invalidText
    }
  }
}
