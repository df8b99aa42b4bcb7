import BatchIdentifiers

/// Tracks how far a program's answers can be trusted.
///
/// If an answer does not repeat its row's identifier and the program writes something unrequested,
/// the answer may belong to another row.
struct AnswerCredit {
  /// How far earlier answers can be trusted if there turn out to be too many.
  enum Trust {
    /// There are no answers.
    case unasked
    /// Each answer repeats its row's identifier, so none belongs to another row.
    case identified
    /// An answer may belong to another row.
    case unidentified
  }

  /// The maximum bytes of unrequested output to keep.
  static let surplusLimit = 1000
  private static let surplusWait = Duration.milliseconds(5)

  private(set) var trust = Trust.unasked
  /// The unrequested output, as far as an error shows it.
  private var surplus: [UInt8] = []
  /// The time of the last answer, and the time that two answers took.
  private var last = (at: ContinuousClock.now, pace: Duration.zero)

  var hasSurplus: Bool { !surplus.isEmpty }

  mutating func add(surplus bytes: some Collection<UInt8>) {
    surplus += bytes.prefix(Self.surplusLimit - surplus.count)
  }

  /// Measures the pace of a complete set of answers.
  mutating func answered(
    _ count: Int,
    since start: ContinuousClock.Instant,
    at now: ContinuousClock.Instant
  ) {
    last = (now, start.duration(to: now) * 2 / max(count, 1))
  }

  /// Records whether each of the accepted answers repeats its row's identifier.
  ///
  /// - Returns: How long to wait for a surplus answer: the time for two answers, but a few
  ///   milliseconds at most; nil if a surplus answer would cast no doubt on others.
  mutating func accept(identified: Bool, at now: ContinuousClock.Instant) -> Duration? {
    guard !identified else {
      if trust == .unasked { trust = .identified }
      return nil
    }
    trust = .unidentified
    return hasSurplus
      ? .zero : max(.zero, now.duration(to: last.at + min(last.pace, Self.surplusWait)))
  }

  /// The message about unrequested output that casts no doubt on any answer.
  var harmless: String {
    trust == .unasked
      ? "it has written \(quotedSurplus) and was given no row"
      : "it has written \(quotedSurplus) beyond its answers, none of which is in doubt"
  }

  var tooMany: CommandExchange.Fault {
    .init(
      blame: .anyRow,
      message:
        "has written more answers than there were rows\(hasSurplus ? ": \(quotedSurplus)" : "")",
      remedy: "it must write one line for each line that it reads"
    )
  }

  private var quotedSurplus: String {
    let line = surplus.prefix { $0 != 0x0a }
    return String(decoding: line, as: UTF8.self).quotedForMessage
  }
}
