package import BatchIdentifiers
public import BatchRuns

extension Job {
  /// The format of an export's file.
  public enum ExportFormat: Hashable, Sendable {
    /// A line for each row; the file may be compressed.
    case lines(LineFormat, TextCompression)
    /// Apache Parquet: columns of stated types, in groups of rows.
    case parquet(Parquet)

    /// A JSON object per line.
    public static let ndjson = lines(.ndjson(json: []), .none)
    /// RFC 4180, with a header line.
    public static let csv = lines(.csv(CSVForm()), .none)

    /// The name in a job file.
    public var name: String {
      switch self {
      case .lines(let format, _): format.format.rawValue
      case .parquet: "parquet"
      }
    }

    /// How a file of lines is compressed.
    package var compression: TextCompression {
      if case .lines(_, let compression) = self { compression } else { .none }
    }

    /// What the parts of an export in this format have in common.
    package func form(ofJob job: String) -> ExportForm {
      ExportForm(job: job, format: name, compression: compression)
    }

    package static let names = RowFormat.allCases.map(\.rawValue) + ["parquet"]

    /// The columns that the format names, and where in a job file.
    package var namedColumns: [(name: String, path: JobPath)] {
      switch self {
      case .lines(let format, _):
        format.json.enumerated().map { ($1, JobPath("action", "json").appending($0)) }
      case .parquet(let parquet):
        parquet.types.keys.sorted().map { ($0, JobPath("action", "types", $0)) }
      }
    }
  }

  /// What a job states of a Parquet file.
  public struct Parquet: Hashable, Sendable {
    /// The types of columns, by name; the others have those of their declarations.
    public var types: [String: ColumnType]
    /// What to do with a value that its column's type cannot hold.
    public var onMismatch: Mismatch
    /// How the pages of the file are compressed.
    public var compression: Compression

    /// Makes the statement.
    public init(
      types: [String: ColumnType] = [:],
      onMismatch: Mismatch = .fail,
      compression: Compression = .snappy
    ) {
      self.types = types
      self.onMismatch = onMismatch
      self.compression = compression
    }

    /// What to do with a value that its column's type cannot hold.
    public enum Mismatch: String, CaseIterable, Hashable, Sendable {
      /// The row fails.
      case fail
      /// NULL is written instead.
      case null
    }

    /// How the pages of a file are compressed.
    public enum Compression: String, CaseIterable, Hashable, Sendable {
      /// Not at all.
      case none
      /// Snappy, which every reader knows.
      case snappy
      /// LZ4 without a frame (`LZ4_RAW`).
      case lz4
    }
  }

  /// The type of a column in a file.
  public enum ColumnType: Hashable, Sendable {
    /// A whole number of 64 bits.
    case integer
    /// A number of double precision.
    case real
    /// 1 and 0 are true and false.
    case boolean
    /// Text in UTF-8; numbers as their digits.
    case text
    /// Bytes.
    case blob
    /// Text that is JSON.
    case json
    /// Text such as `0f6b3f9e-1f4c-4a8e-9d5e-0c5f8a7b6c5d`, or 16 bytes.
    case uuid
    /// Text such as `2026-11-29`.
    case date
    /// Text such as `2026-11-29 08:30:00.125`, at some place.
    case timestamp
    /// Such text in UTC.
    case timestamptz
    /// A number of at most so many digits, some of them after the point.
    case decimal(precision: Int, scale: Int)

    /// The maximum number of digits of a decimal.
    package static let digitLimit = 38
    private static let simple: [String: ColumnType] = [
      "integer": .integer, "real": .real, "boolean": .boolean, "text": .text, "blob": .blob,
      "json": .json, "uuid": .uuid, "date": .date, "timestamp": .timestamp,
      "timestamptz": .timestamptz,
    ]
    package static var names: [String] { simple.keys.sorted() + ["decimal(PRECISION,SCALE)"] }

    /// Reads a name as in a job file, such as `integer` or `decimal(12,2)`.
    ///
    /// - Returns: Nil if there is no such type.
    public init?(_ name: String) {
      if let type = Self.simple[name] {
        self = type
        return
      }
      guard name.hasPrefix("decimal("), name.hasSuffix(")") else { return nil }
      let parts = name.dropFirst(8).dropLast().split(
        separator: ",",
        omittingEmptySubsequences: false
      ).map { Int($0.filter { $0 != " " }) }
      guard (1...2).contains(parts.count), let precision = parts[0],
        let scale = parts.count == 2 ? parts[1] : 0, (1...Self.digitLimit).contains(precision),
        (0...precision).contains(scale)
      else { return nil }
      self = .decimal(precision: precision, scale: scale)
    }

    /// The name in a job file.
    public var name: String {
      if case .decimal(let precision, let scale) = self { return "decimal(\(precision),\(scale))" }
      return Self.simple.first { $0.value == self }?.key ?? ""
    }
  }
}

extension Job.Export {
  /// The columns that must be written, and where in a job file they are named.
  package var namedColumns: [(name: String, path: JobPath)] {
    format.namedColumns + partitions.map { ($0.column, .exportFolder) }
  }
}

extension BatchError {
  /// The error of a format that names a column which is not exported.
  package static func notWritten(_ name: String, at place: String, among columns: [String]) -> Self
  {
    BatchError(
      .unknownAttribute,
      "the export writes no column \(name.quotedForMessage)",
      at: place,
      remedy: "remove it, or name one of \(columns.joined(separator: ", "))"
    )
  }
}
