import SystemPackage
package import BatchJobs
package import BatchIdentifiers
package import BatchRuns

extension Checkpoint {
  /// Refuses to resume a run whose job, store or schema has changed since it began.
  package func refuse(
    unless job: Job,
    _ parameters: ParameterValues,
    in store: Store,
    expecting expected: ExpectedSchema,
    identifiersHash: String?
  ) throws(BatchError) {
    try metadata.refuse(unless: job, parameters, identifiersHash: identifiersHash, at: path.string)
    let own = list.header.storeIdentifier
    guard store.identity.admits(own, atPath: store.path) else {
      let difference =
        "the checkpoint belongs to store \(own), the database is \(store.identity.uuid)"
      guard store.identity.isDerived else { throw refusal(difference) }
      throw refusal(
        "\(difference); both stand for the database's path, since no run has written to it",
        remedy: "move the database back to its path to resume, or run with --fresh to set the run"
          + " aside"
      )
    }
    guard expected.recorded == metadata.schema else {
      throw refusal(
        "the record of what the run expects of the schema was changed by hand",
        remedy: "run with --fresh to set the checkpoint aside"
      )
    }
  }
}
