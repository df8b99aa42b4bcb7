import BatchStore

/// What an object knows of its row.
enum StoredRow {
  /// Nothing: it is read when somebody wants to know.
  case fault
  /// What it was before the object was made a fault, which the object may have again.
  case stale([SQLValue], readAt: ContinuousClock.Instant)
  /// What it was when it was last read or saved; without a time where a save, of this context or
  /// another one, has shown that it is outdated.
  case read([SQLValue], at: ContinuousClock.Instant?)
  /// What it was when the object was deleted, which the save expects to find there; somebody else's
  /// change was merged since.
  case superseded([SQLValue])
  /// That it is gone, and what it was last.
  case gone([SQLValue]?)

  /// A value for each column of the entity; nil for a fault.
  var values: [SQLValue]? {
    switch self {
    case .read(let values, _), .superseded(let values): values
    case .gone(let values): values
    case .fault, .stale: nil
    }
  }

  /// Whether the row turned out to be gone.
  var isGone: Bool {
    if case .gone = self { true } else { false }
  }

  /// Whether the row is known not to be the latest.
  var isOutdated: Bool {
    if case .read(_, nil) = self { true } else { false }
  }

  /// What the row was when it was last seen, whether or not that may still be used.
  var latest: [SQLValue]? {
    if case .stale(let values, _) = self { values } else { values }
  }

  /// The same row after a save has shown that it is outdated.
  var outdated: StoredRow {
    switch self {
    case .read(let values, _): .read(values, at: nil)
    case .stale: .fault
    case .fault, .gone, .superseded: self
    }
  }

  /// The same row of an object that is not to be deleted any more.
  var asKept: StoredRow {
    if case .superseded = self { .fault } else { self }
  }

  /// The same row of an object that is made a fault, and so has to ask whether it is there still.
  var asFault: StoredRow {
    switch self {
    case .read(let values, let time?): .stale(values, readAt: time)
    // A row that is outdated is of no use any more.
    case .read(_, nil), .gone, .superseded: .fault
    case .fault, .stale: self
    }
  }
}
