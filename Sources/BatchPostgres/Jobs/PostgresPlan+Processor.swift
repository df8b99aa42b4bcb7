#if PostgreSQL
import BatchIdentifiers
import BatchJobs
package import BatchRuns

extension PostgresPlan {
  /// How long a chunk's statement may take before the chunk is halved.
  package static let statementLimit = Duration.seconds(120)

  /// The processor of the chunks of a run that writes rows.
  ///
  /// - Parameters:
  ///   - spans: The identifiers.
  ///   - end: How each chunk ends.
  ///   - run: The UUID of the run.
  ///   - policy: What happens if rows fail.
  ///   - connect: Makes the connection of a worker.
  /// - Returns: The processor.
  package func processor(
    of spans: any ChunkSpans,
    _ end: ChunkEnd,
    run: String,
    onFailure policy: FailurePolicy,
    by connect: @escaping PostgresConnection.Connecting
  ) -> any ChunkProcessor {
    let lease = cause.database.lease
    let limits = ChunkLimits(
      lock: cause.database.busyTimeout,
      statement: Self.statementLimit,
      silence: lease
    )
    func chunks<Change: ChunkChange>(of change: Change) -> ChunkTransaction<Change> {
      ChunkTransaction(change, end, limits: limits, onFailure: policy)
    }
    func processor<Change: ChunkChange>(
      of change: Change,
      preparing prepare: @escaping PostgresChangeProcessor<Change>.Preparing
    ) -> any ChunkProcessor {
      PostgresChangeProcessor(
        chunks(of: change),
        of: spans,
        reconnectingFor: lease,
        by: connect,
        preparing: prepare
      )
    }
    func processor<Change: ChunkChange>(of change: Change) -> any ChunkProcessor
    where Change.Rows == RowKeys {
      processor(of: change) { PreparedChunk(content: $0, count: $0.count, byteCount: 0) }
    }
    switch work {
    case .change(let change): return processor(of: change)
    case .undo(let undo, _): return processor(of: undo)
    case .load(let insertion):
      return processor(of: insertion) { keys throws(BatchError) in
        let read = try await DetachedThread.run { () throws(BatchError) in
          try insertion.records(keys)
        }
        return PreparedChunk(content: read, count: read.count, byteCount: read.values.byteCount)
      }
    case .transform(let transform, let action, let handler, let children):
      return PostgresTransformProcessor(
        chunks(of: transform),
        of: spans,
        handlerTimeLimit: action.timeout,
        reconnectingFor: lease,
        by: connect,
        transform.computing(
          by: handler,
          run: run,
          // For programs, the code that waits for their answers enforces the timeout.
          timeout: children == nil ? action.timeout : nil,
          onFailure: policy
        )
      )
    case .archiving: preconditionFailure("the archive is made before the run has a chunk")
    case .export: preconditionFailure("an export writes no rows")
    }
  }
}
#endif
