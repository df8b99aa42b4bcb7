import BatchIdentifiers
import BatchStore

extension Job {
  /// The job's database, which is kept open.
  ///
  /// A store that Core Data made can be written only if the job says so.
  func openStore(isReadOnly: Bool = false) async throws(BatchError) -> Store {
    try await Store(
      keepingOpen: database.path.string,
      isReadOnly: isReadOnly || database.readOnly,
      busyTimeout: database.busyTimeout,
      overwritesCoreData: database.coreData == .overwrite && action.writes
    )
  }

  /// Refuses to write to a store that Core Data made, unless the job says that no app will open it again.
  func refuseCoreData(_ store: Store) throws(BatchError) {
    guard store.coreData != nil, database.coreData != .overwrite else { return }
    throw BatchError(
      .readOnly,
      "this is a store of Core Data: an app that opens it later knows nothing of what a job has changed,"
        + " and overwrites it",
      at: place(of: .database),
      remedy: "export instead, work on a copy, or say \"coreData\": \"overwrite\" in database if no"
        + " app will open it again"
    )
  }
}
