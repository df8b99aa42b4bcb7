import BatchIdentifiers
package import BatchRuns
import SystemPackage

extension PlanReport {
  /// The records of a load to try, and how many of them to show.
  package static let triedRecords = 1_000
  package static let shownRecords = 5
  private static let namedFailures = 3

  /// A warning about records that would fail; nil if none would.
  package static func warning(of failures: [String], amongFirst count: Int) -> String? {
    if failures.isEmpty { return nil }
    let rest =
      failures.count > namedFailures
      ? ", and \((failures.count - namedFailures).grouped) more" : ""
    return "\(failures.count.grouped) of the first \(count.grouped) records would fail: "
      + failures.prefix(namedFailures).joined(separator: "; ") + rest
  }
}

extension PlanReport.Load {
  /// Describes what a load reads.
  package init(_ load: Job.Load, _ files: LoadedFiles, types: [Job.ValueType]) {
    let conflict =
      switch load.onConflict {
      case .fail: "fail"
      case .ignore: "ignore"
      case .update: "update"
      }
    self.init(
      files: files.files.indices.map { index in
        PlanReport.LoadedFile(
          path: load.path(of: files.files[index]).string,
          records: files.blocks.reduce(0) { $0 + ($1.file == index ? $1.recordCount : 0) },
          bytes: files.files[index].byteCount
        )
      },
      types: Dictionary(zip(files.fields, types.map(\.rawValue))) { first, _ in first },
      onConflict: conflict
    )
  }
}
