import SystemPackage
import BatchRuns
package import BatchIdentifiers

extension Job {
  /// The file of identifiers that names the job's rows.
  ///
  /// - Parameters:
  ///   - entity: The entity that the identifiers must be of.
  ///   - store: The UUID of the database.
  ///   - admits: Whether identifiers with a UUID are of the database.
  /// - Returns: The file; nil if a condition selects the rows.
  /// - Throws: `BatchError` of code `otherRun` for the identifiers of another entity or database; what keeps the file from
  ///   being read.
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
