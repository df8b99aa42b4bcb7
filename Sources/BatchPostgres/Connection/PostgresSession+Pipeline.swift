#if PostgreSQL
package import BatchIdentifiers
import CPostgres

package struct PostgresStatement: Sendable {
  package let sql: String
  package let values: [PostgresValue]

  package init(sql: String, values: [PostgresValue] = []) {
    self.sql = sql
    self.values = values
  }
}

extension PostgresSession {
  /// Runs one statement in its own transaction, whose commit need not wait for the disk or a
  /// standby.
  @discardableResult
  func executeAtEase(_ sql: String, _ values: PostgresValue...) throws(BatchError) -> PostgresResult
  {
    let setting = PostgresStatement(
      sql: "SELECT pg_catalog.set_config('synchronous_commit', 'off', true)"
    )
    return try execute(together: [setting, PostgresStatement(sql: sql, values: values)])[1]
  }

  /// The same for several statements, in one transaction.
  func executeAtEase(_ statements: [PostgresStatement]) throws(BatchError) {
    let setting = PostgresStatement(
      sql: "SELECT pg_catalog.set_config('synchronous_commit', 'off', true)"
    )
    try execute(together: [setting] + statements)
  }

  /// Runs statements in one round trip to the server, in order; after a failure, skips the rest.
  ///
  /// Only for bounded answers, since none is read until all statements are sent.
  @discardableResult
  package func execute(
    together statements: [PostgresStatement]
  ) throws(BatchError) -> [PostgresResult] {
    let beginning = takeBeginning()
    let answers = try pipeline { () throws(BatchError) in
      for statement in beginning + statements { try send(statement.sql, statement.values, .text) }
    }
    return Array(answers.dropFirst(beginning.count))
  }

  /// Runs a statement with each of some lists of values, of the same types, in one round trip, inside
  /// a transaction.
  ///
  /// The server parses it once, and plans it a few times.
  func execute(
    _ sql: String,
    withEach lists: [[PostgresValue]]
  ) throws(BatchError) -> [PostgresResult] {
    guard let types = lists.first?.map(\.type) else { return [] }
    let answers = try pipeline { () throws(BatchError) in
      guard unsafe PQsendPrepare(handle, "", sql, Int32(types.count), types) == 1 else {
        throw sessionError()
      }
      for values in lists { try send(nil, values, .text) }
    }
    return Array(answers.dropFirst())
  }

  private func pipeline(
    _ send: () throws(BatchError) -> Void
  ) throws(BatchError) -> [PostgresResult] {
    guard !isClosed, unsafe PQenterPipelineMode(handle) == 1 else { throw sessionError() }
    var problem: BatchError?
    do throws(BatchError) {
      try send()
    } catch {
      problem = error
    }
    // What was sent before an invalid value is not wanted either; the caller rolls it back.
    guard unsafe PQpipelineSync(handle) == 1 else { throw problem ?? sessionError() }
    var answers: [PostgresResult] = []
    var isOver = false
    while !isOver {
      guard let result = nextResult() else {
        // A nil ends each statement's answers; a lost session returns only nil.
        if isLost {
          isOver = true
          problem = problem ?? sessionError()
        }
        continue
      }
      switch result.status {
      case PGRES_PIPELINE_SYNC: isOver = true
      case PGRES_PIPELINE_ABORTED: break
      case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: problem = problem ?? error(result)
      default: answers.append(result)
      }
    }
    if unsafe !isLost && PQexitPipelineMode(handle) != 1 { close() }
    if let problem { throw problem }
    return answers
  }
}
#endif
