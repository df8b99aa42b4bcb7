/// What a comparison is to find out.
package enum ComparisonAim: Sendable {
  /// What is not as expected, with the first differences of all.
  case surprises(ExpectedChanges?, limit: Int)
  /// What has changed, by tables and columns, with the first rows of each.
  case changes(samples: Int)

  /// The most rows that one worker reports, if it reports them by tables and columns.
  static let sampleLimit = 10_000

  /// What may differ.
  var expected: ExpectedChanges? {
    if case .surprises(let expected, _) = self { expected } else { nil }
  }

  /// Whether the run may have made a table, so that the other file need not have it.
  func creates(_ table: String) -> Bool {
    guard case .surprises(let expected, _) = self else { return true }
    return expected?.archive.map { $0.isCreated && SQLName.equal($0.table, table) } ?? false
  }

  /// Whether all differences are reported, by columns.
  var countsColumns: Bool { if case .changes = self { true } else { false } }

  /// How many rows are reported for each column, and for each table of those that one database alone has.
  var samples: Int { if case .changes(let samples) = self { samples } else { 0 } }

  /// The most differences that are told.
  var limit: Int {
    if case .surprises(_, let limit) = self { limit } else { Self.sampleLimit }
  }

  /// The same, of what both databases have: columns may have come and gone since.
  func limited(to tables: [ComparedTable]) -> ComparisonAim {
    guard case .surprises(let expected?, let limit) = self else { return self }
    return .surprises(expected.limited(to: tables), limit: limit)
  }
}
