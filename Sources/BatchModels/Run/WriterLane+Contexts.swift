import BatchEngine
package import BatchIdentifiers
package import BatchStore

extension WriterLane {
  /// Some positions of a chunk: a context to save, or one that failed.
  package enum SavedPart: Sendable {
    case context(ChunkContext)
    case failed(Int, BatchError)
  }

  /// Saves the contexts of a chunk and enters it in the ledger, all or nothing.
  ///
  /// - Parameters:
  ///   - parts: The parts of the chunk, ascending.
  ///   - positions: The positions of the chunk.
  ///   - onFailure: How to treat failing identifiers, across the whole run.
  ///   - run: The run whose changes are kept for undo; nil to keep none.
  ///   - refused: Receives the errors of parts that could not be saved, by their indices in
  ///     `parts`.
  /// - Returns: The result of the chunk.
  /// - Throws: `BatchError` of code `rowsChanged` if parts were refused and must be redone; the
  ///   error of the identifier that exceeds the limit; or any error that concerns more than a row.
  func commitContexts(
    _ parts: [SavedPart],
    at positions: Range<Int>,
    onFailure: FailurePolicy,
    recordingFor run: String?,
    noting refused: Lock<[Int: BatchError]>
  ) async throws(BatchError) -> Commit {
    let isAlone = parts.contains { part in
      if case .context(let context) = part { context.changesOtherStores } else { false }
    }
    if isAlone, run != nil {
      throw BatchError(
        .unrecordable,
        "the closure has changed objects of several stores, but only one keeps the undo records",
        at: connection.path,
        remedy: "change objects of one store, or run without undo"
      )
    }
    return try await commit(positions, onFailure: onFailure, isAlone: isAlone) {
      [connection, recorder] onFailure throws(BatchError) in
      refused.withLock { $0.removeAll() }
      if run != nil { try recorder.begin() }
      return try connection.savepoint { () throws(BatchError) in
        var written = ChunkResult()
        var errors: [Int: BatchError] = [:]
        for (index, part) in parts.enumerated() {
          switch part {
          case .failed(let position, let error):
            guard written.failures.count < onFailure.limit else {
              throw onFailure.refusal(error)
            }
            written.failures.append((position - positions.lowerBound, error))
          case .context(let context):
            written.succeeded += context.succeeded
            let start = context.positions.lowerBound - positions.lowerBound
            written.passedOver.vanished.formUnion(context.vanished(from: start))
            guard context.hasChanges else { continue }
            do throws(BatchError) {
              try connection.savepoint { () throws(BatchError) in
                try context.write(
                  through: connection,
                  namingObjects: onFailure == .failChunk
                )
              }
            } catch {
              // A trigger's RAISE(ROLLBACK) has ended the transaction, and with it the whole chunk.
              guard !connection.isAutocommit,
                error.code == .mergeConflict || onFailure != .failChunk && error.isAboutObjects
              else { throw error }
              errors[index] = error
            }
          }
        }
        guard errors.isEmpty else {
          refused.withLock { $0 = errors }
          throw BatchError(.rowsChanged, "some objects could not be saved as they are")
        }
        if let run { try recorder.record(ofRun: run) }
        return written
      }
    } whenCommitted: {
      for case .context(let context) in parts { context.finish() }
    }
  }
}
