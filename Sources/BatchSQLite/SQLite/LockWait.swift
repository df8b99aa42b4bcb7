import BatchRuns
import BatchIdentifiers
import BatchPlatform
import CSQLite

/// Waits for locks of other connections, until a time limit or a stop of the run; SQLite's own
/// wait, `sqlite3_busy_timeout`, notices neither a stop nor an interrupt.
@safe
package final class LockWait: Sendable {
  private struct State {
    var limit = Duration.zero
    /// What to interrupt if the wait ends without the lock.
    var interrupted: Interrupter?
    var start = ContinuousClock.now
    var last = ContinuousClock.now
  }

  /// The pauses between two attempts in milliseconds, the same as SQLite's; the last one repeats.
  private static let pauses = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100]

  private let path: String
  private let state = Lock(State())

  init(path: String) {
    self.path = path
  }

  /// Sets how long a statement waits, and what to interrupt if it does not get the lock.
  func setLimit(_ limit: Duration, interrupting interrupted: Interrupter? = nil) {
    state.withLock { state in
      state.limit = limit
      state.interrupted = interrupted
    }
  }

  /// Makes a connection wait in this way; it must not outlive this object.
  func register(in database: OpaquePointer) {
    unsafe sqlite3_busy_handler(
      database,
      { context, count in
        guard let context = unsafe context else { return 0 }
        return unsafe Unmanaged<LockWait>.fromOpaque(context)._withUnsafeGuaranteedRef {
          $0.pause(after: Int(count)) ? 1 : 0
        }
      },
      unsafe Unmanaged.passUnretained(self).toOpaque()
    )
  }

  /// Pauses before the next attempt; false if the wait is over.
  private func pause(after tries: Int) -> Bool {
    let left = state.withLock { state in
      state.last = .now
      if tries == 0 { state.start = state.last }
      return state.limit - state.start.duration(to: state.last)
    }
    guard left > .zero, !RunStop.isOver() else {
      state.withLock { $0.interrupted }?.interrupt()
      return false
    }
    let pause = Duration.milliseconds(Self.pauses[min(tries, Self.pauses.count - 1)])
    usleep(UInt32(min(pause, left) / .microseconds(1)))
    return true
  }

  /// Describes the current wait if it is at least this long.
  package func wait(of least: Duration) -> String? {
    let (start, last) = state.withLock { ($0.start, $0.last) }
    let duration = start.duration(to: .now)
    guard duration >= least, last.duration(to: .now) < .milliseconds(500) else { return nil }
    return "another connection's lock on \(path), for \(duration.components.seconds) s"
  }
}
