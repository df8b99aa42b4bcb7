/// Why no footer can be written.
package enum ParquetError: Error, Hashable, Sendable {
  /// What ends at this offset is no row group, or its description is damaged.
  case damagedRowGroup(end: Int)
  /// The row group that ends at this offset was written for other columns.
  case otherColumns(end: Int)
  /// A footer of this many bytes exceeds what its length in the file can express.
  case tooManyRowGroups(footerByteCount: Int)
}
