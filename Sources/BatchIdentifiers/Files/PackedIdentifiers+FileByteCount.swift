extension PackedIdentifiers {
  /// The size of a file with this list, without metadata and log.
  package var fileByteCount: Int {
    let directory = directory.encoded(header.keyKind)
    let header = FileLayout(list: self, metadata: [], directory: directory).encoded()
    return header.count + directory.count + encodedByteCount
  }
}
