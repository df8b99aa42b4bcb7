public import BatchIdentifiers
import BatchJobs
import BatchSQLite

extension JobPlan.Work {
  /// The transform of a job, with its columns and its program resolved.
  static func transform(
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

extension Job {
  /// The handler of a transform, and the programs that it needs.
  func handler(
    of transform: Transform,
    columns: TransformColumns,
    kinds: CommandHandler.Kinds = .init(),
    among handlers: [String: TransformHandler]
  ) throws(BatchError) -> (any RowHandler, ChildPool?) {
    let (handler, children) = try program(
      of: transform,
      columns: columns,
      kinds: kinds,
      among: handlers
    )
    guard transform.invalidText == .fail else { return (handler, children) }
    return (ValidTextHandler(handler, writes: columns.writes.count), children)
  }

  private func program(
    of transform: Transform,
    columns: TransformColumns,
    kinds: CommandHandler.Kinds,
    among handlers: [String: TransformHandler]
  ) throws(BatchError) -> (any RowHandler, ChildPool?) {
    switch transform.program {
    case .handler(let name):
      do throws(BatchError) {
        guard let registered = handlers[name] else {
          throw BatchError.unknownHandler(name, among: handlers.keys.sorted())
        }
        return (try registered.handler(for: columns), nil)
      } catch {
        throw error.located(at: place(of: .handler))
      }
    case .command(let arguments):
      try CommandHandler.checkNames(of: columns, in: self)
      do throws(BatchError) {
        let handler = try CommandHandler(
          arguments,
          columns: columns,
          kinds: kinds,
          timeout: transform.timeout,
          job: self
        )
        return (handler, handler.pool)
      } catch {
        throw error.located(at: place(of: .command))
      }
    }
  }
}

extension JobPlan {
  /// The programs of a command transform.
  var children: ChildPool? {
    if case .transform(_, _, let children) = work { children } else { nil }
  }

  /// The variables that describe the run to a program.
  func variables(run: String) -> [String: String] {
    CommandHandler.environment(of: job, run: run, parameters: parameters.sqlValues)
  }

  /// Starts the first program of a command transform, which may fail, before anything is written.
  ///
  /// - Parameters:
  ///   - run: The run.
  ///   - count: The maximum number of programs.
  ///   - hasRows: Whether there is anything to do; otherwise nothing is started.
  /// - Throws: `BatchError` of code `commandNotStarted`.
  func startChildren(run: String, atMost count: Int, hasRows: Bool) throws(BatchError) {
    do throws(BatchError) {
      try children?.start(environment: variables(run: run), atMost: count, hasRows: hasRows)
    } catch {
      throw error.located(at: job.place(of: .command))
    }
  }
}

extension BatchError.Code {
  /// A job names a handler that the program has not registered.
  public static let unknownHandler = Self(rawValue: "unknownHandler")
}

extension BatchError {
  fileprivate static func unknownHandler(_ name: String, among names: [String]) -> BatchError {
    // The list of this program's handlers shows that it is the wrong executable.
    let listed = remedyListing(names, kind: "registered handlers")
    let remedy =
      if names.isEmpty {
        "this program has none: handlers need your own executable, see Handlers.md"
      } else if let nearest = nearestName(to: name, among: names) {
        "did you mean \(nearest.quotedForMessage)? \(listed)"
      } else {
        listed
      }
    return BatchError(
      .unknownHandler,
      "there is no handler \(name.quotedForMessage)",
      remedy: remedy
    )
  }
}
