import BatchRuns
import BatchIdentifiers
import BatchPlatform
import CSQLite

/// A connection's waits for other connections' locks, each until a time limit or a stop of the run.
///
/// SQLite's own, `sqlite3_busy_timeout`, notices neither a stop nor an interrupt.
@safe
package final class LockWait: Sendable {
  private struct State {
    var limit = Duration.zero
    /// What a wait interrupts that ends without the lock.
    var interrupted: Interrupter?
    /// When the last wait began, and when it was last found to go on.
    var start = ContinuousClock.now
    var last = ContinuousClock.now
  }

  /// The pauses between two tries, as SQLite's own; the last one repeats.
  private static let pauses = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100]

  private let path: String
  private let state = Lock(State())

  init(path: String) {
    self.path = path
  }

  /// Sets how long a statement waits, and what to interrupt if that is in vain.
  func setLimit(_ limit: Duration, interrupting interrupted: Interrupter? = nil) {
    state.withLock { state in
      state.limit = limit
      state.interrupted = interrupted
    }
  }

  /// Makes a connection, which must not outlive this object, wait in this way.
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

  /// Pauses before the next try; false if the wait is over.
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

  /// The wait that goes on, in words, if it is long.
  package func wait(of least: Duration) -> String? {
    let (start, last) = state.withLock { ($0.start, $0.last) }
    let duration = start.duration(to: .now)
    guard duration >= least, last.duration(to: .now) < .milliseconds(500) else { return nil }
    return "another connection's lock on \(path), for \(duration.components.seconds) s"
  }
}
