import BatchIdentifiers

/// How far a program's answers can be trusted: if one does not repeat its row's identifier, and the
/// program writes something unrequested, that answer may be another row's.
struct AnswerCredit {
  /// How far the answers so far can be trusted if there turn out to be too many.
  enum Trust {
    /// There are none.
    case unasked
    /// Each repeats its row's identifier, so none belongs to another row.
    case identified
    /// One may belong to another row.
    case unidentified
  }

  /// The maximum bytes of unrequested output that are kept.
  static let surplusLimit = 1000
  /// The longest wait for a surplus answer.
  private static let surplusWait = Duration.milliseconds(5)

  private(set) var trust = Trust.unasked
  /// The unrequested output, as far as an error shows it.
  private var surplus: [UInt8] = []
  /// When the last answer came, and how long two answers took.
  private var last = (at: ContinuousClock.now, pace: Duration.zero)

  /// Whether there is unrequested output.
  var hasSurplus: Bool { !surplus.isEmpty }

  /// Notes unrequested output.
  mutating func add(surplus bytes: some Collection<UInt8>) {
    surplus += bytes.prefix(Self.surplusLimit - surplus.count)
  }

  /// Notes a complete set of answers.
  mutating func answered(
    _ count: Int,
    since start: ContinuousClock.Instant,
    at now: ContinuousClock.Instant
  ) {
    last = (now, start.duration(to: now) * 2 / max(count, 1))
  }

  /// Notes whether each of the taken answers repeats its row's identifier.
  ///
  /// - Returns: How long to wait for a surplus answer: the time for two of them, but a few
  ///   milliseconds at most. Nil if one would cast no doubt.
  mutating func accept(identified: Bool, at now: ContinuousClock.Instant) -> Duration? {
    guard !identified else {
      if trust == .unasked { trust = .identified }
      return nil
    }
    trust = .unidentified
    return hasSurplus
      ? .zero : max(.zero, now.duration(to: last.at + min(last.pace, Self.surplusWait)))
  }

  /// The message about unrequested output if no answer is in doubt.
  var harmless: String {
    trust == .unasked
      ? "it has written \(quotedSurplus) and was given no row"
      : "it has written \(quotedSurplus) beyond its answers, none of which is in doubt"
  }

  /// The fault of a program that has written too many answers.
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
