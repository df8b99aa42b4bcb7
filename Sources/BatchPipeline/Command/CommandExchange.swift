/// One question to a program and its answers, apart from pipes, processes and clocks.
///
/// Whoever has those does the ``next(at:)`` step and tells what came of it, until there is none.
struct CommandExchange {
  /// What a program is asked: lines for some of the rows of a chunk, after others that are answered.
  struct Question {
    /// The lines, which are dropped once they are written.
    var lines: [UInt8]
    /// How many they are.
    var count: Int
    /// How many rows of the chunk were answered before, and how many it has.
    var answeredBefore: Int
    var chunkCount: Int
    /// When the first row of the chunk was asked, and how long all of them may take.
    var start: ContinuousClock.Instant
    var timeout: Duration
  }

  /// What is to be done.
  enum Step: Equatable {
    /// Wait for so long that something can be sent or received, and do that.
    case transfer(within: Duration)
    /// Leave the program alone for so long.
    case rest(Duration)
    /// Find out how the program has ended, which has closed its output: see ``fault(ofEnd:)``.
    case findEnd
    /// Give the program up.
    case giveUp(Fault)
    /// Take the answers, all of which are there.
    case finish
  }

  /// What a program has done wrong, as a clause about it.
  struct Fault: Equatable {
    let message: String
    let remedy: String?
  }

  /// The most bytes of an answer.
  static let lineLimit = 16 << 20
  /// The most bytes of the answers to a chunk, unless it has so many rows that ``rowShare`` for each
  /// is more.
  private static let answerLimit = 64 << 20
  private static let rowShare = 64 << 10

  private var question: Question
  /// When it was asked.
  let start: ContinuousClock.Instant
  private var sentCount = 0
  /// What has come: at the end the answers, each with its line feed.
  private(set) var answers: [UInt8] = []
  /// How many of the answers are whole, and where the last one ends.
  private var found = 0
  private var lineStart = 0
  private var hasClosed = false
  private var hasRested = false
  /// Whether the time was over when the last transfer began: what had come by then was still read.
  private var isLate = false

  init(_ question: consuming Question, at start: ContinuousClock.Instant) {
    self.question = question
    self.start = start
  }

  /// How many answers there are to be.
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
        message: "has written \(Self.lineLimit >> 20) MB without a line feed",
        remedy: "an answer is one line, and no longer than that"
      )
    }
    let limit = max(Self.answerLimit, count * Self.rowShare)
    if answers.count > limit {
      return Fault(
        message: "has written \(limit >> 20) MB of answers to \(answered) rows",
        remedy: "lower chunk.size"
      )
    }
    guard isLate else { return nil }
    return Fault(
      message: "has answered \(answered) rows after \(question.timeout)",
      remedy: "it must flush its output after each line; or raise action.timeout"
    )
  }

  private var answered: String { "\(question.answeredBefore + found) of \(question.chunkCount)" }

  /// Half the time that the missing answers will take at the pace of those that came, if that is worth
  /// a rest.
  ///
  /// A program that flushes each line would wake whoever waits for each, which costs both of them more
  /// than the line.
  private func rest(at now: ContinuousClock.Instant) -> Duration? {
    guard isSent, found > 0 else { return nil }
    let left = start.duration(to: now) / found * (count - found) / 2
    return left > .microseconds(50) ? min(left, .milliseconds(1)) : nil
  }

  // MARK: What was done

  /// What is still to be sent.
  var unsent: ArraySlice<UInt8> { question.lines[sentCount...] }

  /// Whether nothing is.
  var isSent: Bool { sentCount == question.lines.count }

  /// Takes note that the first bytes of ``unsent`` were sent.
  mutating func sent(_ count: Int) {
    sentCount += count
    guard isSent else { return }
    question.lines = []
    sentCount = 0
  }

  /// Takes what the program has written.
  mutating func receive(_ bytes: ArraySlice<UInt8>) {
    let end = answers.count
    answers.append(contentsOf: bytes)
    found += answers[end...].count { $0 == 0x0a }
    lineStart = answers[end...].lastIndex(of: 0x0a).map { $0 + 1 } ?? lineStart
  }

  /// Takes note that the program writes no more.
  mutating func close() { hasClosed = true }

  /// What is wrong with a program that has closed its output and, unless that is nil, has ended so.
  func fault(ofEnd end: String?) -> Fault {
    Fault(message: "\(end ?? "closed its output") after \(answered) answers", remedy: nil)
  }

  /// Takes from the answers what comes after the last of them, and gives the beginning of it.
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
