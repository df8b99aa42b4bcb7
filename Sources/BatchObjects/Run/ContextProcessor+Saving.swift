import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ContextProcessor {
  /// Saves the contexts of a chunk and records it in the ledger, all or nothing.
  ///
  /// - Parameters:
  ///   - parts: The parts of the chunk, ascending.
  ///   - positions: The positions of the chunk.
  ///   - lane: The lane that saves.
  ///   - refused: Gets the errors of parts that could not be saved, by their indices in `parts`.
  /// - Returns: The result of the chunk.
  /// - Throws: `BatchError` of code `rowsChanged` if parts were refused and must be repeated; the
  ///   error of the identifier that exceeds the limit; or any error that concerns more than one
  ///   row.
  func save(
    _ parts: [Part],
    at positions: Range<Int>,
    by lane: WriterLane,
    noting refused: Lock<[Int: BatchError]>
  ) async throws(BatchError) -> Commit {
    let isAlone = parts.contains { part in
      if case .done(let context) = part { context.changesOtherStores } else { false }
    }
    let run = recordedRun
    if isAlone, run != nil {
      throw BatchError(
        .unrecordable,
        "the closure has changed objects of several stores, but only one keeps the undo records",
        at: lane.path,
        remedy: "change objects of one store, or run without undo"
      )
    }
    return try await lane.commit(positions, onFailure: onFailure, isAlone: isAlone) {
      (lane: isolated WriterLane, onFailure) throws(BatchError) in
      let (connection, recorder) = (lane.connection, lane.recorder)
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
          case .done(let context):
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
              // RAISE(ROLLBACK) in a trigger has ended the transaction, and the whole chunk with
              // it.
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
      for case .done(let context) in parts { context.finish() }
    }
  }
}
