public import BatchIdentifiers
import BatchStore

extension RowTransform {
  /// The transform of a job, its columns and its program found.
  init(
    _ transform: Job.Transform,
    of job: Job,
    query: IdentifierQuery,
    predicate: SQLExpression?,
    values: [String: SQLValue],
    handlers: [String: TransformHandler],
    connection: Connection
  ) throws(BatchError) {
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
      parameters: values
    )
    let handler: any RowHandler
    switch transform.program {
    case .handler(let name):
      do throws(BatchError) {
        guard let registered = handlers[name] else {
          throw BatchError.unknownHandler(name, among: handlers.keys.sorted())
        }
        handler = try registered.handler(for: columns)
      } catch {
        throw error.located(at: job.place(of: .handler))
      }
    case .command:
      throw BatchError(.unknownHandler, "not yet")
    }
    try self.init(
      entity: entity,
      key: query.key,
      reads: reads,
      writes: writes,
      handler: handler,
      predicate: predicate,
      recheck: job.source.recheck,
      parameters: values,
      connection: connection
    )
    do throws(BatchError) {
      try compile(in: connection)
    } catch {
      throw error.located(at: job.place(of: JobPath("action")))
    }
  }
}

extension BatchError.Code {
  /// A job names a handler that the program has not registered.
  public static let unknownHandler = Self(rawValue: "unknownHandler")
}

extension BatchError {
  fileprivate static func unknownHandler(_ name: String, among names: [String]) -> BatchError {
    let remedy =
      names.isEmpty
      ? "this program has none: handlers come with an executable of your own, see Handlers.md"
      : remedyForUnknownName(name, among: names, kind: "registered handlers")
    return BatchError(
      .unknownHandler,
      "there is no handler \(name.quotedForMessage)",
      remedy: remedy
    )
  }
}
