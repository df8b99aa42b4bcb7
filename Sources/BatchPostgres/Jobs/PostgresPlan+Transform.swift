#if PostgreSQL
import BatchJobs
import BatchRuns
package import BatchIdentifiers

extension PostgresPlan {
  static func transform(
    _ transform: Job.Transform,
    of job: Job,
    _ query: PostgresQuery,
    _ recheck: PostgresChange.Condition,
    _ parameters: ParameterValues,
    _ handlers: [String: TransformHandler]
  ) throws(BatchError) -> Work {
    let table = query.table
    for (index, name) in transform.columns.enumerated() {
      _ = try located(at: job.place(of: .columns(index))) { () throws(BatchError) in
        try table.requireColumn(named: name)
      }
    }
    for (index, name) in transform.writes.enumerated() {
      _ = try located(at: job.place(of: .writes(index))) { () throws(BatchError) in
        try table.requireSettableColumn(named: name, besides: query.key)
      }
    }
    let work = try PostgresTransform(
      of: table,
      key: query.key,
      reading: transform.columns,
      writing: transform.writes,
      condition: recheck,
      parameters: query.parameters,
      path: query.path,
      inOrder: job.source.isOrdered
    )
    let columns = TransformColumns(
      reads: work.reads.map(\.name),
      writes: work.writes.map(\.name),
      parameters: parameters.sqlValues,
      store: nil,
      isRehearsal: job.isRehearsal
    )
    let kinds = CommandHandler.Kinds(
      booleans: work.reads.places(of: .boolean),
      numbers: work.reads.places(of: .number),
      writtenNumbers: work.writes.places(of: .number)
    )
    let (handler, children) = try job.handler(
      of: transform,
      columns: columns,
      kinds: kinds,
      among: handlers
    )
    return .transform(work, transform, handler, children)
  }

  private var children: ChildPool? {
    if case .transform(_, _, _, let children) = work { children } else { nil }
  }

  /// The number of extra workers: while a command's programs compute, one worker reads their next
  /// rows.
  package var spareWorkers: Int { children == nil ? 0 : 1 }

  /// - Throws: `BatchError` of code `commandNotStarted`.
  package func start(run: String, atMost workers: Int, hasRows: Bool) throws(BatchError) {
    do throws(BatchError) {
      try children?.start(
        environment: CommandHandler.environment(
          of: job,
          run: run,
          parameters: parameters.sqlValues
        ),
        atMost: workers,
        hasRows: hasRows
      )
    } catch {
      throw error.located(at: job.place(of: .command))
    }
  }

  /// What the run waits for, if it has for at least this long: a silent program.
  package func wait(of least: Duration) -> String? { children?.silence(of: least) }

  package func takeMessages() -> [String] { children?.takeMessages() ?? [] }

  /// - Throws: `BatchError` of code `commandUnreliable` if a program sent an answer to no request.
  package func stop() throws(BatchError) { try children?.close() }
}

extension PostgresTransform {
  /// Computes rows of a run's chunks; `timeout` is nil if the handler enforces a limit itself.
  func computing(
    by handler: any RowHandler,
    run: String,
    timeout: Duration?,
    onFailure policy: FailurePolicy
  ) -> PostgresTransformProcessor.Computing {
    let columnCount = writes.count
    return { isLastTry in
      { rows throws(BatchError) in
        try withTimeLimit(timeout) { () throws(BatchError) in
          try handler.changes(
            of: rows.handled,
            setting: columnCount,
            run: run,
            onFailure: policy,
            isLastTry: isLastTry,
            holding: ChunkBytes.chunkLimit
          )
        }
      }
    }
  }
}

extension [PostgresColumn] {
  fileprivate func places(of form: PostgresColumn.Form) -> Set<Int> {
    Set(indices.filter { self[$0].form == form })
  }
}
#endif
