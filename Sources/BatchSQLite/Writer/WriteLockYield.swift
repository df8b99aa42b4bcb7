import BatchIdentifiers
import BatchPlatform

/// Leaves the write lock free for a while after a chunk, for other writers.
///
/// SQLite's lock has no queue. Waiters retry after 1, 2, 5, 10, 15, 20, 25 and then more
/// milliseconds (`sqliteDefaultBusyCallback`), so a lane that retakes the lock at once nearly
/// always wins, and the other waits for several chunks. Up to the time of a chunk, a waiter's
/// pauses are about as long as it has waited: a gap of three quarters of the chunk's time lets it
/// in.
///
/// The gap only occurs while others have been seen to write, and ends with their commit.
struct WriteLockYield {
  /// How long others count as writing after one of their commits.
  private static let memory = Duration.seconds(1)

  /// How long others should wait at most; nil for no gaps.
  private let target: Duration?
  /// The look that the last gap knew.
  private var look = 0
  private var othersWriteUntil: ContinuousClock.Instant?

  /// Makes the gaps of a lane whose chunks should take a target's time.
  init(target: Duration?) {
    self.target = target
  }

  /// Whether others have recently been seen to write.
  func othersWrite(at now: ContinuousClock.Instant) -> Bool {
    othersWriteUntil.map { now < $0 } ?? false
  }

  /// The gap after a chunk that held the lock for this long.
  func gap(after duration: Duration, at now: ContinuousClock.Instant) -> Duration {
    guard let target, othersWrite(at: now) else { return .zero }
    return min(duration, target) * 0.75
  }

  /// Notes a commit of another connection.
  mutating func noteForeignCommit(at now: ContinuousClock.Instant) {
    othersWriteUntil = now + Self.memory
  }

  /// Waits on the lane's own thread, outside a transaction, if others want the lock.
  mutating func yieldWriteLock(
    after duration: Duration,
    to watch: ForeignCommitWatch,
    in connection: Connection
  ) {
    guard target != nil else { return }
    let clock = ContinuousClock()
    seeCommit(watch, connection, clock.now)
    let end = clock.now + gap(after: duration, at: clock.now)
    while clock.now < end {
      usleep(1000)
      if seeCommit(watch, connection, clock.now) { return }
    }
  }

  /// - Returns: Whether another connection has committed since the last look.
  @discardableResult
  private mutating func seeCommit(
    _ watch: ForeignCommitWatch,
    _ connection: Connection,
    _ now: ContinuousClock.Instant
  ) -> Bool {
    // The chunk is committed: an error here belongs to what comes next.
    guard let isSeen = try? watch.hasSeenCommit(since: look, in: connection) else { return false }
    look = watch.lookCount
    if isSeen { noteForeignCommit(at: now) }
    return isSeen
  }
}
