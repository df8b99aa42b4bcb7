import BatchRuns
import BatchSQLite

/// An object's knowledge of its row.
enum StoredRow {
  /// Nothing: it is read on demand.
  case fault
  /// Its state before the object became a fault, which the object may reuse.
  case stale([SQLValue], readAt: ContinuousClock.Instant)
  /// Its state when last read or saved; without a time if a save, of this context or another one,
  /// has shown that it is outdated.
  case read([SQLValue], at: ContinuousClock.Instant?)
  /// Its state when the object was deleted, which the save expects to find; somebody else's change
  /// was merged since.
  case superseded([SQLValue])
  /// It is gone; its last state.
  case gone([SQLValue]?)

  /// A value per column of the entity; nil for a fault.
  var values: [SQLValue]? {
    switch self {
    case .read(let values, _), .superseded(let values): values
    case .gone(let values): values
    case .fault, .stale: nil
    }
  }

  /// Whether the row was found to be gone.
  var isGone: Bool {
    if case .gone = self { true } else { false }
  }

  /// Whether the row is known to be outdated.
  var isOutdated: Bool {
    if case .read(_, nil) = self { true } else { false }
  }

  /// The row as last seen, whether or not it may still be used.
  var latest: [SQLValue]? {
    if case .stale(let values, _) = self { values } else { values }
  }

  /// The same row, known to be outdated.
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

  /// The same row for a fault, which must check whether it still exists.
  var asFault: StoredRow {
    switch self {
    case .read(let values, let time?): .stale(values, readAt: time)
    // An outdated row is useless.
    case .read(_, nil), .gone, .superseded: .fault
    case .fault, .stale: self
    }
  }
}
