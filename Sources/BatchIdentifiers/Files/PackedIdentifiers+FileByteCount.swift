extension PackedIdentifiers {
  /// How many bytes a file of the list takes, without metadata and log.
  ///
  /// - Complexity: O(n) in the number of blocks.
  package var fileByteCount: Int {
    let directory = directory.encoded(header.keyKind)
    let header = FileLayout(list: self, metadata: [], directory: directory).encoded()
    return header.count + directory.count + encodedByteCount
  }
}
