/// A file of an export to a folder: the rows of some consecutive positions of the list.
///
/// Concatenated in the order of their positions, the files of lines are what one file would be; a
/// Parquet file has its own beginning and end.
package struct ExportPart: Codable, Sendable, Hashable {
  package let first: Int
  package let next: Int
  /// The machine that wrote it; nil if one process writes the whole export.
  package let host: String?
  package let file: String
  package let rows: Int
  package let bytes: Int

  package init(_ positions: Range<Int>, host: String?, file: String, rows: Int, bytes: Int) {
    (first, next) = (positions.lowerBound, positions.upperBound)
    (self.host, self.file, self.rows, self.bytes) = (host, file, rows, bytes)
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

  package init(current: ExportPart?, closed: [ExportPart]) {
    (self.current, self.closed) = (current, closed)
  }

  /// This record with the files of an earlier one, which it replaces.
  func following(_ earlier: ExportPartsRecord) -> ExportPartsRecord {
    if current == nil { return self }
    return ExportPartsRecord(current: current, closed: earlier.closed + closed)
  }
}
