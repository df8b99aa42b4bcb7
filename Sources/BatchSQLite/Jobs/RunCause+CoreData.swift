import BatchJobs
package import BatchIdentifiers

extension RunCause {

  /// Refuses to write to a Core Data store, unless the job says that no app will open it again.
  package func refuseCoreData(_ store: Store) throws(BatchError) {
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
