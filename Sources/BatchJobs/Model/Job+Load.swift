package import BatchIdentifiers
public import BatchRuns
public import SystemPackage

extension Job {
  /// The action that inserts the records of files into the job's table.
  ///
  /// The table is ``Source/entity``; a load selects none of its rows.
  public struct Load: Hashable, Sendable {
    /// The file, or files, to read: a path whose last component may have `*`.
    public var files: FilePath
    /// The format of the files.
    public var format: RowFormat
    /// The columns to set and their expressions, which see the values of a record by name.
    ///
    /// It is nil to set the columns that have the names of the values.
    public var columns: [Assignment]?
    /// The names of the values: of the columns of files without a header, or of the only members of
    /// objects to read; nil to find them in the files.
    public var names: [String]?
    /// The types of values, by name; the others have those of their columns.
    public var types: [String: ValueType]
    /// What to do with a record if the table already has a row with its key.
    public var onConflict: Conflict
    /// The unquoted text of a CSV field that is NULL.
    public var null: String
    /// The character between the fields of CSV.
    public var delimiter: Character

    /// Makes a load.
    public init(
      files: FilePath,
      format: RowFormat,
      columns: [Assignment]? = nil,
      names: [String]? = nil,
      types: [String: ValueType] = [:],
      onConflict: Conflict = .fail,
      null: String = "",
      delimiter: Character = ","
    ) {
      self.files = files
      self.format = format
      self.columns = columns
      self.names = names
      self.types = types
      self.onConflict = onConflict
      self.null = null
      self.delimiter = delimiter
    }
  }

  /// How a load reads a value; a record with a value of another type fails.
  public enum ValueType: String, CaseIterable, Hashable, Sendable {
    /// A whole number of 64 bits.
    case integer
    /// A number.
    case real
    /// A number, which the table converts as it does for any INSERT.
    case number
    /// Text as it is.
    case text
    /// Bytes, which text has in Base64.
    case blob
    /// `true`, `false`, `1` or `0`, stored as 1 or 0.
    case boolean
    /// Anything, which the table converts as it does for any INSERT.
    case any
  }

  /// What a load does with a record if the table already has a row with its key.
  public enum Conflict: Hashable, Sendable {
    /// The record fails.
    case fail
    /// The record is left out, and counts as unchanged.
    case ignore
    /// The row gets the values of the record.
    ///
    /// - Parameter key: The columns of a unique index; nil for the primary key.
    case update(key: [String]?)
  }
}

extension BatchError {
  package static func notForLoads(_ what: String, at place: String) -> BatchError {
    BatchError(
      .invalidJob,
      "\(what) does not work on a load yet",
      at: place,
      remedy: "see Documentation/JobFile.md for what does"
    )
  }
}
