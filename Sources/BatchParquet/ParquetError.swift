/// Why a file cannot be written.
public enum ParquetError: Error, Hashable, Sendable {
  /// What ends at this offset is no row group, or its description is damaged.
  case damagedRowGroup(end: Int)
  /// The row group that ends at this offset was written for other columns.
  case otherColumns(end: Int)
  /// A footer of this many bytes exceeds what its length in the file can express.
  case tooManyRowGroups(footerByteCount: Int)
  /// The columns are not those of a file, in words.
  case invalidColumns(String)
  /// A row does not fit the columns, in words.
  case invalidRow(String)
}
