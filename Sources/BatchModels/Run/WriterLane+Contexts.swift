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
  ///   - limit: How many identifiers of the whole run may fail.
  ///   - refused: Given the errors of parts that could not be saved, by their places in `parts`.
  /// - Returns: What came of the chunk.
  /// - Throws: `BatchError` of code `rowsChanged` if parts were refused and are to be done again; the
  ///   error of the identifier that is one too many; or whatever is about more than a row.
  func save(
    _ parts: [SavedPart],
    at positions: Range<Int>,
    failing limit: Int,
    noting refused: Lock<[Int: BatchError]>
  ) async throws(BatchError) -> Commit {
    let isAlone = parts.contains { part in
      if case .context(let context) = part { context.changesOtherStores } else { false }
    }
    return try await commit(positions, failing: limit, isAlone: isAlone) {
      [connection] limit throws(BatchError) in
      refused.withLock { $0.removeAll() }
      return try connection.savepoint { () throws(BatchError) in
        var applied: WaitingChunk.Applied = (Outcomes(), [])
        var errors: [Int: BatchError] = [:]
        for (index, part) in parts.enumerated() {
          switch part {
          case .failed(let position, let error):
            guard applied.failures.count < limit ?? 0 else { throw error.pastSkip }
            applied.failures.append((position, error))
            applied.outcomes.failed += 1
          case .context(let context):
            applied.outcomes += context.outcomes
            guard context.hasChanges else { continue }
            do throws(BatchError) {
              try connection.savepoint { () throws(BatchError) in
                try context.write(through: connection)
              }
            } catch {
              // A trigger's RAISE(ROLLBACK) has ended the transaction, and with it the whole chunk.
              guard !connection.isAutocommit,
                error.code == .mergeConflict || limit != nil && error.isAboutObjects
              else { throw error }
              errors[index] = error
            }
          }
        }
        guard errors.isEmpty else {
          refused.withLock { $0 = errors }
          throw BatchError(.rowsChanged, "some objects could not be saved as they are")
        }
        return applied
      }
    } whenCommitted: {
      for case .context(let context) in parts { context.finish() }
    }
  }
}
