import BatchEngine
package import BatchIdentifiers
import CSQLite

extension Connection {
  /// Runs `body`, whose statements are interrupted when they have taken so long.
  ///
  /// - Returns: What `body` returns; nil if it was interrupted.
  /// - Throws: What `body` throws for another reason.
  package func within<Result>(
    _ limit: Duration,
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result? {
    let deadline = Deadline(ContinuousClock.now + limit)
    // So often that a statement is stopped in time, and so seldom that it costs nothing.
    let instructions: Int32 = 10_000
    unsafe sqlite3_progress_handler(
      database,
      instructions,
      { context in
        guard let context = unsafe context else { return 0 }
        return unsafe Unmanaged<Deadline>.fromOpaque(context)._withUnsafeGuaranteedRef {
          $0.hasPassed ? 1 : 0
        }
      },
      unsafe Unmanaged.passUnretained(deadline).toOpaque()
    )
    defer { unsafe sqlite3_progress_handler(database, 0, nil, nil) }
    return try withExtendedLifetime(deadline) { () throws(BatchError) in
      do throws(BatchError) {
        return try body()
      } catch {
        guard error.code == .interrupted, deadline.hasPassed else { throw error }
        return nil
      }
    }
  }
}

/// Until when something may take.
private final class Deadline {
  private let end: ContinuousClock.Instant

  init(_ end: ContinuousClock.Instant) {
    self.end = end
  }

  var hasPassed: Bool { ContinuousClock.now >= end }
}
