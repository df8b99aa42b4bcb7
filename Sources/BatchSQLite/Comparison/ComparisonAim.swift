package import BatchJobs

package enum ComparisonAim: Sendable {
  /// The differences that neither the runs, in their order, nor the parts that may differ explain;
  /// up to a limit for the whole comparison.
  case surprises([ExpectedChanges], unchecked: [UncheckedPart], limit: Int)
  case changes(samples: Int)

  /// The maximum number of rows that a worker reports by table and column.
  static let sampleLimit = 10_000

  var runs: [ExpectedChanges] { if case .surprises(let runs, _, _) = self { runs } else { [] } }

  var unchecked: [UncheckedPart] {
    if case .surprises(_, let unchecked, _) = self { unchecked } else { [] }
  }

  /// Whether a run may have created a table, so that the other file need not have it.
  func creates(_ table: String) -> Bool {
    guard case .surprises(let runs, _, _) = self else { return true }
    return runs.contains { run in
      run.archive.map { $0.isCreated && SQLName.equal($0.table, table) } ?? false
    }
  }

  var countsColumns: Bool { if case .changes = self { true } else { false } }

  /// How many rows to report per column, and per table for rows in only one of the databases.
  var samples: Int { if case .changes(let samples) = self { samples } else { 0 } }

  var limit: Int {
    if case .surprises(_, _, let limit) = self { limit } else { Self.sampleLimit }
  }
}
