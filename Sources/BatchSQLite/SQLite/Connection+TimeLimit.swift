import BatchRuns
package import BatchIdentifiers
import CSQLite

extension Connection {
  /// Runs `body`, and interrupts its statements after a time limit; nil if it was interrupted.
  package func within<Result>(
    _ limit: Duration,
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result? {
    let end = ContinuousClock.now + limit
    // Often enough to stop a statement in time, and rarely enough to cost nothing.
    return try interrupting(every: 10_000, if: { ContinuousClock.now >= end }, body)
  }

  /// Runs `body`, and interrupts a statement once SQLite has taken this many steps for it since it
  /// was compiled; nil if it was interrupted.
  func within<Result>(
    steps limit: Int,
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result? {
    try interrupting(every: Int32(clamping: limit), if: { true }, body)
  }

  private func interrupting<Result>(
    every steps: Int32,
    if isOver: @escaping () -> Bool,
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result? {
    let limit = Limit(isOver)
    unsafe sqlite3_progress_handler(
      database,
      steps,
      { context in
        guard let context = unsafe context else { return 0 }
        return unsafe Unmanaged<Limit>.fromOpaque(context)._withUnsafeGuaranteedRef {
          $0.look() ? 1 : 0
        }
      },
      unsafe Unmanaged.passUnretained(limit).toOpaque()
    )
    defer { unsafe sqlite3_progress_handler(database, 0, nil, nil) }
    return try withExtendedLifetime(limit) { () throws(BatchError) in
      do throws(BatchError) {
        return try body()
      } catch {
        guard error.code == .interrupted, limit.isReached else { throw error }
        return nil
      }
    }
  }
}

private final class Limit {
  private let isOver: () -> Bool
  private(set) var isReached = false

  init(_ isOver: @escaping () -> Bool) {
    self.isOver = isOver
  }

  func look() -> Bool {
    isReached = isReached || isOver()
    return isReached
  }
}
