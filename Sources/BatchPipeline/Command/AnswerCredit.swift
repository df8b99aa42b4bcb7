import BatchIdentifiers

/// What the answers of a program are worth: where one does not repeat the identifier of its row, and the
/// program writes something that nobody has asked for, it may be that of another row.
struct AnswerCredit {
  /// What the answers so far are worth if it turns out that there are too many.
  enum Standing {
    /// There are none.
    case unasked
    /// Each repeats the identifier of its row, so none is another's.
    case identified
    /// One may be that of another row.
    case unidentified
  }

  /// The most bytes of what nobody had asked for that are kept.
  static let surplusLimit = 1000
  /// The longest that an answer too many is waited for.
  private static let patience = Duration.milliseconds(5)

  private(set) var standing = Standing.unasked
  /// What was written and nobody had asked for, as far as an error shows it.
  private var surplus: [UInt8] = []
  /// When the last answer came, and how long two answers took.
  private var last = (at: ContinuousClock.now, pace: Duration.zero)

  /// Whether something was written that nobody had asked for.
  var hasSurplus: Bool { !surplus.isEmpty }

  /// Takes note of what was written and nobody had asked for.
  mutating func add(surplus bytes: some Collection<UInt8>) {
    surplus += bytes.prefix(Self.surplusLimit - surplus.count)
  }

  /// Takes note of as many answers as were asked for.
  mutating func answered(
    _ count: Int,
    since start: ContinuousClock.Instant,
    at now: ContinuousClock.Instant
  ) {
    last = (now, start.duration(to: now) * 2 / max(count, 1))
  }

  /// Takes note of whether each of the answers that were taken repeats the identifier of its row.
  ///
  /// - Returns: How long it is worth to wait for one too many: until two of them would have been
  ///   written, but a few milliseconds at most. Nil if one would put nothing in doubt.
  mutating func accept(identified: Bool, at now: ContinuousClock.Instant) -> Duration? {
    guard !identified else {
      if standing == .unasked { standing = .identified }
      return nil
    }
    standing = .unidentified
    return hasSurplus
      ? .zero : max(.zero, now.duration(to: last.at + min(last.pace, Self.patience)))
  }

  /// The message about what nobody had asked for, where no answer is in doubt.
  var harmless: String {
    standing == .unasked
      ? "it has written \(quotedSurplus) and was given no row"
      : "it has written \(quotedSurplus) beyond its answers, of which none is in doubt"
  }

  /// What is wrong with a program that has written too many answers.
  var tooMany: CommandExchange.Fault {
    .init(
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
