package import BatchRuns
package import BatchIdentifiers

/// Computes the changes of rows with a program.
///
/// Each row is a JSON object on a line of its standard input, each answer one on its standard
/// output, in the same order.
package struct CommandHandler: RowHandler {
  package let pool: ChildPool
  private let encoder: CommandRowEncoder
  private let decoder: AnswerDecoder
  private let timeout: Duration
  private let pieces = Lock(PieceSizing())

  /// How to write the values of columns whose types SQLite does not have.
  package struct Kinds {
    /// The columns to read whose values 1 and 0 mean true and false.
    let booleans: Set<Int>
    /// The columns to read whose texts are numbers.
    let numbers: Set<Int>
    /// The columns to write whose numbers must keep all their digits.
    let writtenNumbers: Set<Int>

    package init(
      booleans: Set<Int> = [],
      numbers: Set<Int> = [],
      writtenNumbers: Set<Int> = []
    ) {
      self.booleans = booleans
      self.numbers = numbers
      self.writtenNumbers = writtenNumbers
    }
  }

  package init(
    _ arguments: [String],
    columns: TransformColumns,
    kinds: Kinds = Kinds(),
    timeout: Duration,
    job: Job
  ) throws(BatchError) {
    pool = ChildPool(try .init(arguments, in: job.baseDirectory))
    encoder = CommandRowEncoder(
      columns: columns.reads,
      booleans: kinds.booleans,
      numbers: kinds.numbers
    )
    decoder = AnswerDecoder(columns: columns.writes, numbers: kinds.writtenNumbers)
    self.timeout = timeout
  }

  package func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges {
    // When the time limit began, and the first row at that time.
    var start = (at: ContinuousClock.now, row: 0)
    var answers = decoder.noAnswers(for: rows)
    var count = 0
    while count < rows.count, count == 0 || answers.values.bytes.count < byteLimit {
      let size = pieces.withLock { $0.size }
      let piece = count..<min(rows.count, count + size)
      var lines: [UInt8] = []
      for row in piece { encoder.append(rows, row, to: &lines) }
      var question = CommandExchange.Question(
        lines: lines,
        count: piece.count,
        answeredBefore: count,
        chunkCount: rows.count,
        start: start.at,
        timeout: timeout
      )
      lines = []
      let reply = try pool.withChild { child throws(BatchError) in
        let asked = question
        question.lines = []
        let reply = try child.answers(to: asked)
        pieces.withLock { $0.observe(reply.count, reply.answers.count) }
        let areIdentified = try decoder.read(
          reply.answers,
          for: rows,
          piece.prefix(reply.count),
          into: &answers
        )
        if reply.count == piece.count { try child.accept(identified: areIdentified) }
        return reply
      }
      count += reply.count
      if let fault = reply.fault {
        // A program that was only slow continues with the next row, unless that row must not fail.
        let isSlow = fault.blame == .time && count > start.row
        if !isSlow || answers.failures.count >= policy.limit {
          answers.fail(count, fault.error)
          count += 1
        }
        start = (.now, count)
      }
      // The rest need not be tried.
      if answers.failures.count > policy.limit { return answers }
    }
    answers.values.count = count
    return answers
  }

  /// Refuses columns whose names have another meaning in the lines of a command.
  package static func checkNames(of columns: TransformColumns, in job: Job) throws(BatchError) {
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

  /// The environment variables that describe the run to a program.
  package static func environment(
    of cause: some RunCause,
    run: String,
    parameters: [String: SQLValue]
  ) -> [String: String] {
    var variables = ["BATCH_JOB": cause.name, "BATCH_RUN": run]
    if cause.isRehearsal { variables["BATCH_REHEARSAL"] = "1" }
    for (name, value) in parameters {
      switch value {
      case .null, .blob, .invalidText: break
      case .integer(let value): variables["BATCH_PARAM_\(name)"] = String(value)
      case .real(let value): variables["BATCH_PARAM_\(name)"] = value.description
      case .text(let value): variables["BATCH_PARAM_\(name)"] = value
      }
    }
    return variables
  }
}

/// How many rows of a chunk to ask at once, so that the answers are of reasonable size.
///
/// The size of answers is unknown before the first one.
private struct PieceSizing {
  /// The maximum factor from one piece to the next.
  private static let growth = 8

  private var largest = 0
  /// The average length of an answer; long answers lower it only slowly afterwards.
  private var answerBytes = 0.0

  package mutating func observe(_ count: Int, _ bytes: Int) {
    if count == 0 { return }
    largest = max(largest, count)
    let observed = Double(bytes) / Double(count)
    answerBytes = max(observed, (answerBytes + observed) / 2)
  }

  package var size: Int {
    let held = answerBytes > 0 ? Double(ChunkBytes.chunkLimit) / answerBytes : .infinity
    return max(1, Int(min(held, Double(largest * Self.growth))))
  }
}
