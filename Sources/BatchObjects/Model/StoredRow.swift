import BatchRuns
import BatchSQLite

enum StoredRow {
  /// Nothing: the row is read on demand.
  case fault
  /// The row before the object became a fault, which the object may reuse.
  case stale([SQLValue], readAt: ContinuousClock.Instant)
  /// The row as last read or saved; without a time if a save in any context has shown that it is
  /// outdated.
  case read([SQLValue], at: ContinuousClock.Instant?)
  /// The row at the time when the object was deleted, which the save expects to find; a change by
  /// others was merged since then.
  case superseded([SQLValue])
  /// The row is gone; this was its last state.
  case gone([SQLValue]?)

  var values: [SQLValue]? {
    switch self {
    case .read(let values, _), .superseded(let values): values
    case .gone(let values): values
    case .fault, .stale: nil
    }
  }

  var isGone: Bool {
    if case .gone = self { true } else { false }
  }

  var isOutdated: Bool {
    if case .read(_, nil) = self { true } else { false }
  }

  /// The row as last seen, whether or not it may still be used.
  var latest: [SQLValue]? {
    if case .stale(let values, _) = self { values } else { values }
  }

  var outdated: StoredRow {
    switch self {
    case .read(let values, _): .read(values, at: nil)
    case .stale: .fault
    case .fault, .gone, .superseded: self
    }
  }

  /// The same row after its deletion was reverted.
  var asKept: StoredRow {
    if case .superseded = self { .fault } else { self }
  }

  /// The same row for a fault, which must check that it still exists.
  var asFault: StoredRow {
    switch self {
    case .read(let values, let time?): .stale(values, readAt: time)
    // An outdated row is useless.
    case .read(_, nil), .gone, .superseded: .fault
    case .fault, .stale: self
    }
  }
}
