package import BatchIdentifiers
import BatchRuns

extension Job {
  /// Tells how many of the first rows have a value that its column's type cannot hold; nil if none has.
  package func warning(aboutTypesOf failures: [BatchError], among count: Int) -> String? {
    guard let first = failures.first else { return nil }
    let fate =
      policy.skip.limit > 0
      ? "fail, and skip decides how many may" : "fail, and the first stops the run"
    return "\(failures.count.grouped) of the first \(count.grouped) rows \(fate): \(first.message)"
  }
}
