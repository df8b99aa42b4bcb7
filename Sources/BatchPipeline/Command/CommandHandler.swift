import BatchEngine
import BatchIdentifiers
import BatchStore

/// Has a program compute the changes of rows: each row a JSON object on a line of its standard
/// input, each answer one on its standard output, in the same order.
struct CommandHandler: RowHandler {
  let pool: ChildPool
  private let encoder: CommandRowEncoder
  private let decoder: AnswerDecoder
  private let timeout: Duration
  private let pieces = Lock(PieceSizing())

  /// What is said of columns that SQLite does not have: how their values are written in lines.
  struct Kinds {
    /// The columns that are read whose 1 and 0 are true and false.
    var booleans: Set<Int> = []
    /// The columns that are read whose texts are numbers.
    var numbers: Set<Int> = []
    /// The columns that are written in which all digits of a number count.
    var writtenNumbers: Set<Int> = []
  }

  /// A handler for the columns of a job.
  ///
  /// - Throws: `BatchError` of code `commandNotStarted` if there is no such program.
  init(
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

  func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int
  ) throws(BatchError) -> RowChanges {
    let start = ContinuousClock.now
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
        start: start,
        timeout: timeout
      )
      lines = []
      try pool.withChild { child throws(BatchError) in
        let asked = question
        question.lines = []
        let text = try child.answers(to: asked)
        pieces.withLock { $0.observe(piece.count, text.count) }
        let areIdentified = try decoder.read(text, for: rows, piece, into: &answers)
        try child.accept(identified: areIdentified)
      }
      count = piece.upperBound
    }
    answers.values.count = count
    return answers
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
    if job.isRehearsal { variables["BATCH_REHEARSAL"] = "1" }
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

/// How many rows of a chunk a program is asked at once: as many as are not too much when they are
/// answered, of which nothing is known before the first.
private struct PieceSizing {
  /// How much larger than those before it a piece may be.
  private static let growth = 8

  private var largest = 0
  /// How long the answer to a row is, on average; long ones are forgotten slowly.
  private var answerBytes = 0.0

  mutating func observe(_ count: Int, _ bytes: Int) {
    largest = max(largest, count)
    let observed = Double(bytes) / Double(count)
    answerBytes = max(observed, (answerBytes + observed) / 2)
  }

  var size: Int {
    let held = answerBytes > 0 ? Double(ChunkBytes.chunkLimit) / answerBytes : .infinity
    return max(1, Int(min(held, Double(largest * Self.growth))))
  }
}
