public import BatchRuns
public import SystemPackage

extension Job {
  /// What a job does to its rows.
  ///
  /// Later versions may add actions, so a `switch` needs a `default`.
  public enum Action: Hashable, Sendable {
    /// Sets columns to the values of SQL expressions.
    case update(Update)
    /// Deletes rows, and may copy them to an archive first.
    case delete(Delete)
    /// Writes rows to a file.
    case export(Export)
    /// Sets columns to values computed by a program.
    case transform(Transform)
    /// Inserts the records of files.
    case load(Load)

    package enum Kind: String, CaseIterable, Sendable {
      case update, delete, export, transform, load
    }

    package var kind: Kind {
      switch self {
      case .update: .update
      case .delete: .delete
      case .export: .export
      case .transform: .transform
      case .load: .load
      }
    }

    /// The name of the action in a job file.
    public var type: String { kind.rawValue }

    /// The time limit for external code per chunk; nil if no such code is called.
    package var handlerTimeLimit: Duration? {
      if case .transform(let transform) = self { transform.timeout } else { nil }
    }

    /// Whether the action changes the database.
    public var writes: Bool {
      switch self {
      case .update, .delete, .transform, .load: true
      case .export: false
      }
    }

    /// Whether the rows that the action works on are in the database before it.
    package var selectsRows: Bool {
      if case .load = self { false } else { true }
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

  /// What an update does with a row that already has the new values.
  public enum Unchanged: String, CaseIterable, Hashable, Sendable {
    /// The row is written like others, and its triggers run.
    case write
    /// The row is not written, and counts as unchanged.
    case skip
  }

  /// A column and the expression for its new value.
  public struct Assignment: Hashable, Sendable {
    /// The column to set.
    public var column: String
    /// The SQL expression; it sees the parameters and the row before the update.
    public var expression: String

    /// Makes an assignment.
    public init(_ column: String, to expression: String) {
      self.column = column
      self.expression = expression
    }
  }

  /// The action that deletes rows.
  public struct Delete: Hashable, Sendable {
    /// The entity that receives a copy of each row, in the transaction that deletes it.
    public var archive: String?
    /// Whether to create a missing archive, with the structure of the table whose rows are deleted.
    public var createsArchive: Bool

    /// Makes a delete.
    public init(archive: String? = nil, createsArchive: Bool = false) {
      self.archive = archive
      self.createsArchive = createsArchive
    }
  }

  /// The action that writes rows to a file.
  public struct Export: Hashable, Sendable {
    /// The file to write; for an export in parts, the folder for its files.
    public var file: FilePath
    /// The format of the file.
    public var format: ExportFormat
    /// The columns to write, in order; nil for all.
    public var columns: [String]?
    /// Whether a file that the job did not create may be replaced.
    public var overwrite: Bool
    /// Whether to write several files into a folder, with a manifest that lists them in order.
    public var isInParts: Bool
    /// The size in bytes that no file of a folder exceeds, unless a single chunk or group of rows does; nil for
    /// any.
    public var maximumFile: Int64?
    /// The folders within the folder: each row is in that for its values.
    public var partitions: [Partition]
    /// What to write for text that is not UTF-8.
    public var invalidText: InvalidText

    /// Makes an export.
    public init(
      file: FilePath,
      format: ExportFormat,
      columns: [String]? = nil,
      overwrite: Bool = false,
      isInParts: Bool = false,
      maximumFile: Int64? = nil,
      partitions: [Partition] = [],
      invalidText: InvalidText = .replace
    ) {
      self.file = file
      self.format = format
      self.columns = columns
      self.overwrite = overwrite
      self.isInParts = isInParts
      self.maximumFile = maximumFile
      self.partitions = partitions
      self.invalidText = invalidText
    }

    /// Where a job file names the output.
    package var path: JobPath { isInParts ? .exportFolder : .exportFile }
  }

  /// The action that sets columns to values computed by a program.
  public struct Transform: Hashable, Sendable {
    /// The program that computes the values.
    public enum Program: Hashable, Sendable {
      /// A handler that the Swift program has registered under this name.
      case handler(String)
      /// A command with its arguments, which reads rows and writes changes, one JSON object per
      /// line.
      case command([String])
    }

    /// What happens to text that is not UTF-8.
    public enum InvalidText: String, CaseIterable, Hashable, Sendable {
      /// A command receives the bytes in Base64, a handler receives them as they are.
      case base64
      /// The row fails.
      case fail
    }

    /// The only columns to read.
    public var columns: [String]
    /// The columns that may be written.
    public var writes: [String]
    /// The program that computes the values.
    public var program: Program
    /// The maximum time for the rows of a chunk.
    public var timeout: Duration
    /// What happens to text that is not UTF-8.
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
