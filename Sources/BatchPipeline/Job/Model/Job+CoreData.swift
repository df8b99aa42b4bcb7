import BatchIdentifiers
import BatchStore

extension Job {
  /// The job's open database.
  ///
  /// A Core Data store can be written only if the job says so.
  func openStore(isReadOnly: Bool = false) async throws(BatchError) -> Store {
    try await Store(
      keepingOpen: database.path.string,
      isReadOnly: isReadOnly || database.readOnly,
      busyTimeout: database.busyTimeout,
      overwritesCoreData: database.coreData == .overwrite && action.writes
    )
  }

  /// Refuses to write to a Core Data store, unless the job says that no app will open it again.
  func refuseCoreData(_ store: Store) throws(BatchError) {
    guard store.coreData != nil, database.coreData != .overwrite else { return }
    throw BatchError(
      .readOnly,
      "this is a Core Data store: an app that opens it later does not notice a job's changes,"
        + " and overwrites them",
      at: place(of: .database),
      remedy: "export instead, work on a copy, or set \"coreData\": \"overwrite\" in database if no"
        + " app will open it again"
    )
  }
}
