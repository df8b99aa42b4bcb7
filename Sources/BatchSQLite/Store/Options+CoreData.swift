extension Connection.Options {
  /// The options for opening a store.
  ///
  /// In a Core Data store, nothing may change, not even the index of its log.
  ///
  /// Examines the store without changing any file; blocks the thread. If a database cannot be
  /// examined that way, for example while it is being recovered, opening it reveals what it is.
  package func suited(toStoreAt path: String) -> Self {
    var untouched = self
    untouched.leavesNoTrace = true
    untouched.isReadOnly = true
    guard let probe = try? Connection(path: path, options: untouched) else { return self }
    defer { probe.close() }
    return (try? probe.isCoreDataStore) == true ? untouched : self
  }
}
