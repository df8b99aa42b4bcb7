extension PackedIdentifiers {
  /// The size of a file with this list, without metadata and log.
  ///
  /// - Complexity: O(n) in the number of blocks.
  package var fileByteCount: Int {
    let directory = directory.encoded(header.keyKind)
    let header = FileLayout(list: self, metadata: [], directory: directory).encoded()
    return header.count + directory.count + encodedByteCount
  }
}
