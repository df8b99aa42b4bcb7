package import BatchIdentifiers

/// Rows that are written in groups.
///
/// A group ends with the row that fills it. So a run that was killed writes the same groups again,
/// wherever its chunks end, since it continues after a whole group.
package protocol RowGrouping: ~Copyable {
  /// Adds rows, as ``TypedRows``, and gives each group that they fill to `write`, with the number of
  /// its last row.
  mutating func append(
    _ bytes: [UInt8],
    _ write: (RowGroup, _ last: Int) throws(BatchError) -> Void
  ) throws(BatchError)

  /// Takes the rows since the last group; nil if there are none.
  mutating func takeGroup() -> RowGroup?
}

/// A whole group, as a file has it.
package struct RowGroup {
  package let bytes: [UInt8]
  package let invalidTexts: Int
}

/// What makes the groups of a file.
package enum GroupFormat: Sendable {
  case parquet(RowGroups.Format)
  case lines(TextCompression)

  /// Groups for files of at most `limit` bytes.
  func makeGroups(atMost limit: Int) -> any RowGrouping & ~Copyable {
    switch self {
    case .parquet(let format): RowGroups(format, atMost: limit / 4)
    case .lines(let compression): LineFrames(compression, atMost: limit / 4)
    }
  }

  /// About how many bytes follow so many groups in a file.
  func endLength(ofGroups count: Int) -> Int {
    switch self {
    case .parquet(let format): 200 + format.columns.count * (100 + 150 * count)
    case .lines: 0
    }
  }

  /// Appends what a file ends with after all its groups, unless it has it.
  func writeEnd(to file: ExportFile) throws(BatchError) {
    switch self {
    case .parquet(let format): try format.writeEnd(to: file)
    // No bytes are no file of either format.
    case .lines(let compression): if file.count == 0 { try file.append(compression.frame(of: [])) }
    }
  }
}
