extension Connection.Options {
  /// The options with which a store is opened: of one that Core Data made nothing is changed, be it the index
  /// of its log.
  ///
  /// Looked at without a change to any file; blocks the thread. Of a database that cannot be read in that way,
  /// such as one that is being recovered, the opening itself tells what it is.
  package func suited(toStoreAt path: String) -> Self {
    var untouched = self
    untouched.leavesNoTrace = true
    untouched.isReadOnly = true
    guard let probe = try? Connection(path: path, options: untouched) else { return self }
    defer { probe.close() }
    return (try? probe.isCoreDataStore) == true ? untouched : self
  }
}
