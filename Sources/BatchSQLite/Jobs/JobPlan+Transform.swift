package import BatchRuns
package import BatchIdentifiers
package import BatchJobs

extension JobPlan.Work {
  package static func transform(
    _ transform: Job.Transform,
    of job: Job,
    query: IdentifierQuery,
    into written: WrittenEntity,
    predicate: SQLExpression?,
    values: [String: SQLValue],
    handlers: [String: TransformHandler],
    store: Store,
    connection: Connection
  ) throws(BatchError) -> JobPlan.Work {
    let entity = query.entity
    let reads = try entity.attributes(named: transform.columns, of: job)
    var writes: [Attribute] = []
    for (index, name) in transform.writes.enumerated() {
      do throws(BatchError) {
        writes.append(try entity.settableAttribute(named: name))
      } catch {
        throw error.located(at: job.place(of: .writes(index)))
      }
    }
    let columns = TransformColumns(
      reads: reads.map(\.name),
      writes: writes.map(\.name),
      parameters: values,
      store: store,
      isRehearsal: job.isRehearsal
    )
    let (handler, children) = try job.handler(of: transform, columns: columns, among: handlers)
    do throws(BatchError) {
      let work = try RowTransform(
        entity: entity,
        into: written,
        key: query.key,
        reads: reads,
        writes: writes,
        handler: handler,
        // A program is timed by the thread that waits for its answers.
        timeout: children == nil ? transform.timeout : nil,
        predicate: predicate,
        recheck: job.source.recheck,
        parameters: values,
        enforcesForeignKeys: job.database.foreignKeys,
        ordered: job.source.isOrdered,
        connection: connection
      ).failingOnConflict(in: connection)
      try work.compile(in: connection)
      return .transform(work, transform, children)
    } catch {
      throw error.located(at: job.place(of: JobPath("action")))
    }
  }
}

extension JobPlan {
  package var children: ChildPool? {
    if case .transform(_, _, let children) = work { children } else { nil }
  }

  package func variables(run: String) -> [String: String] {
    CommandHandler.environment(of: job, run: run, parameters: parameters.sqlValues)
  }

  /// Starts the first program of a command transform, which may fail, before anything is written.
  ///
  /// Starts nothing unless `hasRows`.
  ///
  /// - Throws: `BatchError` of code `commandNotStarted`.
  package func startChildren(run: String, atMost count: Int, hasRows: Bool) throws(BatchError) {
    do throws(BatchError) {
      try children?.start(environment: variables(run: run), atMost: count, hasRows: hasRows)
    } catch {
      throw error.located(at: job.place(of: .command))
    }
  }
}
