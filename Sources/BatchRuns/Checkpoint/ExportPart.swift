/// A file of an export to a folder: the rows of some consecutive positions of the list.
package struct ExportPart: Codable, Sendable, Hashable {
  package let first: Int
  package let next: Int
  /// The machine that wrote it; nil if one process writes the whole export.
  package let host: String?
  /// Its path from the folder; empty if the positions have no rows, and need no file.
  package let file: String
  package let rows: Int
  package let bytes: Int
  /// The checksum of the bytes; nil if an earlier version wrote the file.
  package let sha256: String?
  /// The keys of its first and its last row.
  package let firstKey: String?
  package let lastKey: String?
  /// When it was last written, in nanoseconds since 1970; nil if another process wrote it.
  package let modified: Int64?

  package init(
    _ positions: Range<Int>,
    host: String?,
    file: String,
    rows: Int,
    bytes: Int,
    sha256: String?,
    keys: (first: String?, last: String?),
    modified: Int64? = nil
  ) {
    (first, next) = (positions.lowerBound, positions.upperBound)
    (self.host, self.file, self.rows, self.bytes) = (host, file, rows, bytes)
    (self.sha256, firstKey, lastKey, self.modified) = (sha256, keys.first, keys.last, modified)
  }

  package var positions: Range<Int> { first..<next }

  package static func prefix(ofRun run: String) -> String { "part-\(run.prefix(8))-" }

  /// What the name of a part begins with.
  package static func stem(ofRun run: String, from first: Int) -> String {
    let digits = String(first)
    let zeros = String(repeating: "0", count: max(0, 12 - digits.count))
    return "\(prefix(ofRun: run))\(zeros)\(digits)"
  }
}

/// The files of an export to a folder in a record of progress.
package struct ExportPartsRecord: Codable, Sendable {
  /// The file in progress; nil if the output starts over, so that earlier records do not count.
  package var current: ExportPart?
  /// The files completed since the record before.
  package var closed: [ExportPart] = []
  /// How many files there are, and their bytes.
  package var files: Int?
  package var bytes: Int?

  package init(
    current: ExportPart?,
    closed: [ExportPart],
    files: Int? = nil,
    bytes: Int? = nil
  ) {
    (self.current, self.closed, self.files, self.bytes) = (current, closed, files, bytes)
  }

  /// This record with the files of an earlier one, which it replaces.
  func following(_ earlier: ExportPartsRecord) -> ExportPartsRecord {
    if current == nil { return self }
    var joined = self
    joined.closed = earlier.closed + closed
    return joined
  }
}
