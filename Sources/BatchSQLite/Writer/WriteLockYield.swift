import BatchIdentifiers
import BatchPlatform

/// Leaves the write lock free for a while after a chunk, so that other writers can take it.
///
/// SQLite's lock has no queue. Waiters retry after 1, 2, 5, 10, 15, 20, 25 and then more
/// milliseconds (`sqliteDefaultBusyCallback`). A lane that retakes the lock at once nearly always
/// wins, and the other writer waits for several chunks. Until a waiter has waited as long as a
/// chunk takes, its pauses are about as long as its wait so far, so a gap of three quarters of the
/// chunk's time lets it in.
///
/// There is a gap only if other connections have recently written, and it ends with their commit.
struct WriteLockYield {
  /// How long others count as writing after one of their commits.
  private static let memory = Duration.seconds(1)

  /// The longest time that others should wait; nil for no gaps.
  private let target: Duration?
  /// The last check for commits that the previous gap knew.
  private var look = 0
  private var othersWriteUntil: ContinuousClock.Instant?

  init(target: Duration?) {
    self.target = target
  }

  func othersWrite(at now: ContinuousClock.Instant) -> Bool {
    othersWriteUntil.map { now < $0 } ?? false
  }

  /// The gap after a chunk that held the lock for the given time.
  func gap(after duration: Duration, at now: ContinuousClock.Instant) -> Duration {
    guard let target, othersWrite(at: now) else { return .zero }
    return min(duration, target) * 0.75
  }

  mutating func noteForeignCommit(at now: ContinuousClock.Instant) {
    othersWriteUntil = now + Self.memory
  }

  /// Waits outside a transaction, on the lane's own thread, if others want the lock.
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

  /// Whether another connection has committed since the last check.
  @discardableResult
  private mutating func seeCommit(
    _ watch: ForeignCommitWatch,
    _ connection: Connection,
    _ now: ContinuousClock.Instant
  ) -> Bool {
    // The chunk is already committed, so an error here belongs to the next chunk.
    guard let isSeen = try? watch.hasSeenCommit(since: look, in: connection) else { return false }
    look = watch.lookCount
    if isSeen { noteForeignCommit(at: now) }
    return isSeen
  }
}
