import BatchIdentifiers
import BatchJobs
import BatchRuns

extension JobPlan {
  /// How many rows a plan reads as the types of a Parquet file.
  private static let typedRows = 1_000

  /// Refuses types of columns that an export does not write.
  static func refuseOtherColumns(
    of export: Job.Export,
    _ attributes: [Attribute],
    of job: Job
  ) throws(BatchError) {
    guard case .parquet(let parquet) = export.format else { return }
    for name in parquet.types.keys.sorted() {
      let isWritten = attributes.contains {
        $0.name == name || SQLName.equal($0.column, name)
      }
      guard !isWritten else { continue }
      throw BatchError(
        .unknownAttribute,
        "the export writes no column \(name.quotedForMessage)",
        at: job.place(of: JobPath("action", "types", name)),
        remedy: "remove it, or name one of \(attributes.map(\.name).joined(separator: ", "))"
      )
    }
  }

  /// Tells how many of the first rows have a value that its column's type cannot hold.
  func warningsAboutTypes(
    of list: PackedIdentifiers?,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    guard case .export(let export, _) = work, export.types != nil, let list, list.count > 0 else {
      return []
    }
    let count = min(Self.typedRows, list.count)
    let keys = try ChunkKeys(list, 0..<count, key: query.key)
    // Rows that SQLite itself cannot read are told of elsewhere.
    let failures = try export.linesOfPlan(for: keys, in: connection)
      .result.failures.map(\.error).filter { $0.code == .invalidValue }
    guard let first = failures.first else { return [] }
    let fate =
      job.skip.limit > 0
      ? "fail, and skip decides how many may" : "fail, and the first stops the run"
    return [
      "\(failures.count.grouped) of the first \(count.grouped) rows \(fate): \(first.message)"
    ]
  }
}
