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
    let answers = try pool.withChild { child throws(BatchError) in
      let answers = try decoder.answers(
        from: try child.answers(to: lines, count: rows.count, within: timeout),
        for: rows
      )
      try child.accept(identified: answers.areIdentified)
      return answers
    }
    if let retry = answers.retry { throw retry }
    return answers.changes
  }

  /// Refuses columns whose names mean something else in the lines of a command.
  static func checkNames(of columns: TransformColumns, in job: Job) throws(BatchError) {
    for (index, name) in columns.reads.enumerated() where name == "$identifier" {
      throw clash(name, "it holds the key of the row").located(at: job.place(of: .columns(index)))
    }
    for (index, name) in columns.writes.enumerated()
    where AnswerDecoder.reservedNames.contains(name) {
      throw clash(name, "it has a meaning in answers").located(at: job.place(of: .writes(index)))
    }
  }

  private static func clash(_ name: String, _ why: String) -> BatchError {
    BatchError(
      .invalidJob,
      "a command cannot be given a column named \(name.quotedForMessage): \(why)",
      remedy: "rename the column, or use a handler in Swift"
    )
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
