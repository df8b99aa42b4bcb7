package enum ComparisonAim: Sendable {
  /// The unexpected differences, up to a limit for the whole comparison.
  case surprises(ExpectedChanges?, limit: Int)
  case changes(samples: Int)

  /// The maximum number of rows that a worker reports by table and column.
  static let sampleLimit = 10_000

  var expected: ExpectedChanges? {
    if case .surprises(let expected, _) = self { expected } else { nil }
  }

  /// Whether the run may have created a table, so that the other file need not have it.
  func creates(_ table: String) -> Bool {
    guard case .surprises(let expected, _) = self else { return true }
    return expected?.archive.map { $0.isCreated && SQLName.equal($0.table, table) } ?? false
  }

  var countsColumns: Bool { if case .changes = self { true } else { false } }

  /// How many rows to report per column, and per table for rows in only one of the databases.
  var samples: Int { if case .changes(let samples) = self { samples } else { 0 } }

  var limit: Int {
    if case .surprises(_, let limit) = self { limit } else { Self.sampleLimit }
  }

  /// The same, restricted to what both databases have, since columns may have been added or
  /// removed.
  func limited(to tables: [ComparedTable]) -> ComparisonAim {
    guard case .surprises(let expected?, let limit) = self else { return self }
    return .surprises(expected.limited(to: tables), limit: limit)
  }
}
