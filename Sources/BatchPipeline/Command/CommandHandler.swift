import BatchIdentifiers
import BatchStore

/// Has a program compute the changes of rows: each row a JSON object on a line of its standard
/// input, each answer one on its standard output, in the same order.
struct CommandHandler: RowHandler {
  let pool: ChildPool
  private let encoder: RowLineEncoder
  private let decoder: AnswerDecoder
  private let timeout: Duration

  /// A handler for the columns of a job.
  ///
  /// - Throws: `BatchError` of code `commandNotStarted` if there is no such program.
  init(
    _ arguments: [String],
    columns: TransformColumns,
    timeout: Duration,
    job: Job
  ) throws(BatchError) {
    pool = ChildPool(try .init(arguments, in: job.baseDirectory))
    encoder = RowLineEncoder(columns: columns.reads)
    decoder = AnswerDecoder(columns: columns.writes)
    self.timeout = timeout
  }

  func changes(
    of rows: ChunkRows,
    run: String,
    failing limit: Int
  ) throws(BatchError) -> RowChanges {
    var lines: [UInt8] = []
    for row in 0..<rows.count { encoder.append(rows, row, to: &lines) }
    return try pool.withChild { child throws(BatchError) in
      let answers = try child.answers(to: lines, count: rows.count, within: timeout)
      let changes = try decoder.changes(from: answers, for: rows)
      try child.checkSilence()
      return changes
    }
  }

  /// The variables that tell a program what it works for.
  static func environment(
    job: Job,
    run: String,
    parameters: [String: SQLValue]
  ) -> [String: String] {
    var variables = ["BATCH_JOB": job.name, "BATCH_RUN": run]
    for (name, value) in parameters {
      switch value {
      case .null, .blob: break
      case .integer(let value): variables["BATCH_PARAM_\(name)"] = String(value)
      case .real(let value): variables["BATCH_PARAM_\(name)"] = value.description
      case .text(let value): variables["BATCH_PARAM_\(name)"] = value
      }
    }
    return variables
  }
}
