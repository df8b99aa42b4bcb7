#if PostgreSQL
package import BatchIdentifiers
import CPostgres

/// A statement, or a part of one, and the values that it takes.
package struct PostgresStatement: Sendable {
  package let sql: String
  package let values: [PostgresValue]

  package init(sql: String, values: [PostgresValue] = []) {
    self.sql = sql
    self.values = values
  }
}

extension PostgresSession {
  /// Runs statements one after the other in one journey to the server; after one that fails none is run.
  ///
  /// For answers of bounded length: they wait on their way until all statements are sent.
  ///
  /// - Returns: The answer to each.
  /// - Throws: `BatchError` by the server's code, of the statement that failed.
  @discardableResult
  package func execute(
    together statements: [PostgresStatement]
  ) throws(BatchError) -> [PostgresResult] {
    guard !isClosed, unsafe PQenterPipelineMode(handle) == 1 else { throw sessionError() }
    var problem: BatchError?
    do throws(BatchError) {
      for statement in statements { try send(statement.sql, statement.values, .text) }
    } catch {
      problem = error
    }
    // What was sent before a value that cannot be is not wanted either: it is left to the caller's rollback.
    guard unsafe PQpipelineSync(handle) == 1 else { throw problem ?? sessionError() }
    var answers: [PostgresResult] = []
    var isOver = false
    while !isOver {
      guard let result = nextResult() else {
        // Nothing stands between two statements, and nothing else between the last and a lost session.
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
