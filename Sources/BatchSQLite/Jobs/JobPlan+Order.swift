import BatchJobs
import BatchRuns
package import BatchIdentifiers

extension JobPlan {
  /// Whether chunks are committed in the order of the list, because the job asks for an order, or
  /// the order affects the outcome.
  package var isInOrder: Bool { job.source.isOrdered || change?.orderMatters == true }

  /// The plan with an order that allows rows of a table that refers to itself to be deleted, unless
  /// the job asks for another order; `limit` limits the search; nil for no limit.
  package func inDeletionOrder(within limit: Duration?) async throws(BatchError) -> JobPlan {
    guard case .change(let change, _) = work, case .delete = change.action, change.orderMatters,
      entity.kind == .table, !job.source.isOrdered, !query.isLimited
    else { return self }
    let reader = store.connection(label: "batch.plan")
    let ordered = try await reader.perform { connection throws(BatchError) in
      try change.deletionOrder(of: query, within: limit, in: connection)
    }
    var plan = self
    if let ordered { plan.query = ordered }
    return plan
  }

  /// Describes an order in which none of the first rows would fail; nil if none is known.
  ///
  /// The rows that cause failures are mostly the next ones by the set column or, in a deletion, by
  /// key.
  func betterOrder(in connection: Connection) throws(BatchError) -> String? {
    guard change?.orderMatters == true, entity.kind == .table, job.source.identifiers == nil,
      !query.isLimited
    else { return nil }
    let columns = assignments.isEmpty ? query.key.columns : assignments.map(\.column)
    for column in columns.prefix(2) {
      for isDescending in [true, false] {
        var plan = self
        plan.query = query.ordered(by: [SQLName.quoted(column) + (isDescending ? " DESC" : "")])
        let list = try plan.firstIdentifiers(Self.tried, in: connection)
        guard let trial = try plan.trialInOrder(of: list, in: connection), trial.refused == 0
        else { continue }
        let term = Job.OrderTerm(column, descending: isDescending).description
        return "\"orderBy\": [\(term.quotedForMessage)]"
      }
    }
    return nil
  }
}
