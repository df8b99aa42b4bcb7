import SystemPackage
import BatchJobs
package import BatchIdentifiers
package import BatchRuns

extension Checkpoint {
  /// Refuses to resume a run whose job, store or schema has changed since it began.
  package func refuse(unless plan: JobPlan, identifiersHash: String?) throws(BatchError) {
    try metadata.refuse(
      unless: plan.job,
      plan.parameters,
      identifiersHash: identifiersHash,
      at: path.string
    )
    let store = list.header.storeIdentifier
    guard plan.store.identity.admits(store, atPath: plan.store.path) else {
      let difference =
        "the checkpoint belongs to store \(store), the database is \(plan.store.identity.uuid)"
      guard plan.store.identity.isDerived else { throw refusal(difference) }
      throw refusal(
        "\(difference); both stand for the database's path, since no run has written to it",
        remedy: "move the database back to its path to resume, or run with --fresh to set the run"
          + " aside"
      )
    }
    guard plan.expected.recorded == metadata.schema else {
      throw refusal(
        "the record of what the run expects of the schema was changed by hand",
        remedy: "run with --fresh to set the checkpoint aside"
      )
    }
  }
}
