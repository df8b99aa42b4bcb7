import SystemPackage
import BatchRuns
package import BatchIdentifiers

extension Job {
  /// Opens the identifier file that selects the job's rows; nil if a condition selects them.
  ///
  /// Its identifiers must be of `entity` and, unless `admits` accepts their UUID, of the database
  /// with the UUID `store`; otherwise the error is of code `otherRun`.
  package func identifierFile(
    of entity: String,
    in store: String,
    admitting admits: (String) -> Bool
  ) throws(BatchError) -> IdentifierFile? {
    guard let path = source.identifiers else { return nil }
    do throws(BatchError) {
      let file = try IdentifierFile(opening: path)
      let header = file.list.header
      guard header.entityName == entity else {
        throw BatchError(
          .otherRun,
          "the identifiers belong to entity \"\(header.entityName)\"",
          at: path.string,
          remedy: "name a file of \"\(entity)\" identifiers"
        )
      }
      guard admits(header.storeIdentifier) else {
        throw BatchError(
          .otherRun,
          "the identifiers belong to store \(header.storeIdentifier), the database is \(store)",
          at: path.string
        )
      }
      return file
    } catch {
      throw error.located(at: place(of: .identifiers))
    }
  }
}
