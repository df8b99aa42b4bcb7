import BatchJobs
package import BatchIdentifiers

extension JobPlan {
  private static let keyTimeLimit = Duration.seconds(3)

  /// Refuses rows that share a key, as a run does before it writes anything.
  ///
  /// - Returns: Whether all rows could be checked in time.
  /// - Throws: `BatchError` with the place of the key in the job.
  package func refuseSharedKeys() async throws(BatchError) -> Bool {
    try await store.connection(label: "batch.plan").perform { connection throws(BatchError) in
      try checkKey(in: connection)
    }
  }

  /// Refuses rows that share a key; returns whether all rows could be checked in time.
  func checkKey(in connection: Connection) throws(BatchError) -> Bool {
    do throws(BatchError) {
      return try connection.within(Self.keyTimeLimit) { () throws(BatchError) in
        try query.refuseDuplicates(in: connection)
        return true
      } ?? false
    } catch {
      let isDeclared = error.code == .unstableKey && job.source.key != nil
      throw (isDeclared ? error.located(at: job.place(of: JobPath("source", "key"))) : error)
        .inWordsOfJobs
    }
  }

  var warningAboutKey: String {
    let limit = Self.keyTimeLimit / .seconds(1)
    return
      "whether \(query.key.columns.joined(separator: ", ")) identifies each row could not be checked"
      + " within \(Int(limit)) s; batch run checks it before it writes anything"
  }
}
