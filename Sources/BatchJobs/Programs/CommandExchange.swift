import BatchIdentifiers

/// The state of a question to a program and its answers, without pipes, processes and clocks.
///
/// The caller performs the step of ``next(at:)`` and reports its result, until the exchange is
/// finished.
struct CommandExchange {
  /// A question: lines for some of a chunk's rows, after others that were answered.
  struct Question {
    /// Dropped once they are written.
    var lines: [UInt8]
    var count: Int
    /// The number of rows of the chunk that were answered before, and of all.
    var answeredBefore: Int
    var chunkCount: Int
    /// When the first row of the chunk was asked, and the time limit for all rows.
    var start: ContinuousClock.Instant
    var timeout: Duration
  }

  enum Step: Equatable {
    case transfer(within: Duration)
    case rest(Duration)
    /// Find out how the program ended, since it has closed its output; see ``fault(ofEnd:)``.
    case findEnd
    case giveUp(Fault)
    case finish
  }

  /// A fault of the program, as a clause about it.
  struct Fault: Equatable {
    /// What the fault implies for the rows that are not answered.
    enum Blame {
      /// The program cannot do the first of them.
      case nextRow
      /// The program was too slow for all of them, or stuck on the first.
      case time
      /// Any of the rows may be the reason.
      case anyRow
    }

    let blame: Blame
    let message: String
    var remedy: String?
  }

  /// The maximum bytes of an answer.
  static let lineLimit = 16 << 20
  /// The maximum bytes of the answers to a chunk, unless its rows need more at ``rowShare`` each.
  private static let answerLimit = 64 << 20
  private static let rowShare = 64 << 10

  private var question: Question
  private(set) var writtenCount = 0
  let start: ContinuousClock.Instant
  private var sentCount = 0
  /// The received bytes; at the end, the answers with their line feeds.
  private(set) var answers: [UInt8] = []
  /// The number of complete answers, and the end of the last one.
  private(set) var found = 0
  private var lineStart = 0
  private var hasClosed = false
  private var hasRested = false
  /// Whether the time limit was over when the last transfer began: output that had arrived by then
  /// was still read.
  private var isLate = false

  init(_ question: consuming Question, at start: ContinuousClock.Instant) {
    self.question = question
    self.start = start
  }

  var count: Int { question.count }

  // MARK: What is to be done

  mutating func next(at now: ContinuousClock.Instant) -> Step {
    if hasClosed { return .findEnd }
    if found > count || found == count && isSent { return .finish }
    if let fault { return .giveUp(fault) }
    if !hasRested, let rest = rest(at: now) {
      hasRested = true
      return .rest(rest)
    }
    hasRested = false
    let left = now.duration(to: question.start + question.timeout)
    isLate = left <= .zero
    return .transfer(within: max(left, .zero))
  }

  private var fault: Fault? {
    if answers.count - lineStart > Self.lineLimit {
      return Fault(
        blame: .nextRow,
        message: "has written \(Self.lineLimit >> 20) MB without a line feed",
        remedy: "an answer is one line, and no longer than that"
      )
    }
    let limit = max(Self.answerLimit, count * Self.rowShare)
    if answers.count > limit {
      return Fault(
        blame: .anyRow,
        message: "has written \(limit >> 20) MB of answers to \(answered) rows",
        remedy: "lower chunk.size"
      )
    }
    guard isLate else { return nil }
    return Fault(
      blame: .time,
      message: "has answered \(answered) rows after \(question.timeout)",
      remedy: "it must flush its output after each line; or raise action.timeout"
    )
  }

  private var answered: String {
    "\((question.answeredBefore + found).grouped) of \(question.chunkCount.grouped)"
  }

  /// Half of the time that the missing answers will take at the current pace, if that is worth a
  /// rest.
  ///
  /// A program that flushes each line would wake the waiting thread each time, which costs both of
  /// them more than the line itself.
  private func rest(at now: ContinuousClock.Instant) -> Duration? {
    guard isSent, found > 0 else { return nil }
    let left = start.duration(to: now) / found * (count - found) / 2
    return left > .microseconds(50) ? min(left, .milliseconds(1)) : nil
  }

  // MARK: What was done

  var unsent: ArraySlice<UInt8> { question.lines[sentCount...] }

  var isSent: Bool { sentCount == question.lines.count }

  mutating func sent(_ count: Int) {
    sentCount += count
    writtenCount += count
    if isSent { dropUnsent() }
  }

  mutating func dropUnsent() {
    question.lines = []
    sentCount = 0
  }

  mutating func receive(_ bytes: ArraySlice<UInt8>) {
    let end = answers.count
    answers.append(contentsOf: bytes)
    found += answers[end...].count { $0 == 0x0a }
    lineStart = answers[end...].lastIndex(of: 0x0a).map { $0 + 1 } ?? lineStart
  }

  mutating func close() { hasClosed = true }

  /// The fault of a program that has closed its output; `end` describes its end, if it has ended.
  func fault(ofEnd end: String?) -> Fault {
    Fault(blame: .nextRow, message: "\(end ?? "closed its output") after \(answered) answers")
  }

  mutating func dropPartialAnswer() { answers.removeSubrange(lineStart...) }

  /// Removes everything after the last answer, and returns the beginning of it.
  mutating func takeSurplus(upTo limit: Int) -> [UInt8] {
    guard lineStart < answers.count || found > count else { return [] }
    var left = count
    let last = answers.firstIndex { byte in
      if byte == 0x0a { left -= 1 }
      return left == 0
    }
    let end = last.map { $0 + 1 } ?? 0
    defer { answers.removeSubrange(end...) }
    return Array(answers[end...].prefix(limit))
  }
}
