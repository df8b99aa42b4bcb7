import SystemPackage
import BatchJobs
package import BatchIdentifiers

extension RunCause {
  /// The job's open database; a Core Data store can be written only if the job says so.
  package func openStore(isReadOnly: Bool = false) async throws(BatchError) -> Store {
    try await Store(
      keepingOpen: database.path.string,
      isReadOnly: isReadOnly || database.readOnly,
      busyTimeout: database.busyTimeout,
      extensions: database.extensions.map(\.string),
      overwritesCoreData: database.coreData == .overwrite && writes
    )
  }

  package func storeToRead(atPath path: String? = nil) async throws(BatchError) -> Store {
    try await Store(
      path: path ?? database.path.string,
      isReadOnly: true,
      busyTimeout: database.busyTimeout,
      extensions: database.extensions.map(\.string)
    )
  }

  /// An error of opening the database, placed at the job's description of it.
  package func located(openingStore error: BatchError) -> BatchError {
    if case .databaseExtension(let index) = error.subject {
      return error.located(at: place(of: .databaseExtension(index)))
    }
    return error.located(at: place(of: .database))
  }
}
