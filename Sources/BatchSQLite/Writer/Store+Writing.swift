package import BatchRuns
package import BatchIdentifiers

extension Store {
  package func makeWriterLane(
    _ configuration: WriterConfiguration
  ) throws(BatchError) -> WriterLane {
    try WriterLane(path: path, options: options, configuration: configuration)
  }

  /// The completed ranges of a run; nil if the store does not know the run.
  package func doneRanges(ofRun run: String) async throws(BatchError) -> DoneRanges? {
    try await connection(label: "batch.ledger").perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        try Ledger(of: run, in: connection)?.done
      }
    }
  }

  /// How long processes have worked on a run, to a second; 0 if the store does not know it.
  package func elapsedSeconds(ofRun run: String) async throws(BatchError) -> Double {
    try await connection(label: "batch.ledger").perform { connection throws(BatchError) in
      try StoredRun.elapsedSeconds(ofRun: run, in: connection)
    }
  }
}
