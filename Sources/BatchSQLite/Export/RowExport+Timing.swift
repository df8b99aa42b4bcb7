import BatchIdentifiers

extension RowExport {
  /// Makes the lines of chunks as a run does, to estimate how long a run takes; nil if that fails.
  package func tried(_ chunks: [ChunkKeys], in store: Store) -> TriedChunks? {
    guard !store.options.isURI else { return nil }
    do throws(BatchError) {
      let connection = try Connection(path: store.path, options: store.options)
      defer { connection.close() }
      var tried = TriedChunks()
      for (index, keys) in chunks.enumerated() {
        let clock = ContinuousClock()
        let start = clock.now
        _ = try lines(for: keys, in: connection)
        if index == 0, chunks.count > 1 { continue }
        tried.add(keys.identifierCount, start.duration(to: clock.now))
      }
      return tried
    } catch {
      return nil
    }
  }
}
