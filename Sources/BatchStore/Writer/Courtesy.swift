/// How long a lane leaves the write lock alone after a chunk, for others that write too.
///
/// SQLite has no queue for its lock. Whoever waits looks again after 1, 2, 5, 10, 15, 20, 25 and then
/// more milliseconds (`sqliteDefaultBusyCallback`), so a lane that takes the lock again at once wins
/// nearly every time, and the other waits for several chunks. Up to the time of a chunk its pauses
/// are about as long as what it has waited: a gap of three quarters of the chunk's time lets it in.
///
/// The gap is left only while others have been seen to write, and ends with their commit.
struct Courtesy {
  /// How long others count as writing after a commit of theirs.
  private static let memory = Duration.seconds(1)

  /// How long others shall wait at most; nil if nobody has said so, and no gap is left.
  private let target: Duration?
  private var othersWriteUntil: ContinuousClock.Instant?

  /// Gaps for a lane whose chunks shall take a target's time.
  init(target: Duration?) {
    self.target = target
  }

  /// Whether there may be gaps at all.
  var isWanted: Bool { target != nil }

  /// Takes note of a commit of another connection.
  mutating func noteForeignCommit(at now: ContinuousClock.Instant) {
    othersWriteUntil = now + Self.memory
  }

  /// Whether to leave gaps for others that have been seen to write.
  func othersWrite(at now: ContinuousClock.Instant) -> Bool {
    othersWriteUntil.map { now < $0 } ?? false
  }

  /// The gap after a chunk that held the lock for some time.
  func gap(after duration: Duration, at now: ContinuousClock.Instant) -> Duration {
    guard let target, othersWrite(at: now) else { return .zero }
    return min(duration, target) * 0.75
  }
}
