package import BatchIdentifiers

extension Connection.Options {
  /// The options with which a store is opened: of one that Core Data made nothing is changed, be it the index
  /// of its log.
  ///
  /// Looked at on a thread of its own, without a change to any file. Of a database that cannot be read in that
  /// way, such as one that is being recovered, the opening itself tells what it is.
  package func suited(toStoreAt path: String) async throws(BatchError) -> Self {
    var untouched = self
    untouched.leavesNoTrace = true
    untouched.isReadOnly = true
    let probe = StoreConnection(label: "batch.probe", path: path, options: untouched)
    let isCoreData =
      (try? await probe.perform { connection throws(BatchError) in
        try connection.isCoreDataStore
      }) ?? false
    await probe.close()
    return isCoreData ? untouched : self
  }
}
