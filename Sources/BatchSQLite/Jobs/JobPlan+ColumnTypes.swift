import BatchIdentifiers
import BatchJobs
import BatchRuns

extension JobPlan {
  /// How many rows a plan reads as the types of a Parquet file.
  private static let typedRows = 1_000

  /// Refuses statements of columns that an export does not write.
  static func refuseOtherColumns(
    of export: Job.Export,
    _ attributes: [Attribute],
    of job: Job
  ) throws(BatchError) {
    for (name, path) in export.namedColumns
    where !attributes.contains(where: { $0.isNamed(name) }) {
      throw .notWritten(name, at: job.place(of: path), among: attributes.map(\.name))
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
    // Rows that SQLite itself cannot read are reported elsewhere.
    let failures = try export.linesOfPlan(for: keys, in: connection)
      .result.failures.map(\.error).filter { $0.code == .invalidValue }
    return job.warning(aboutTypesOf: failures, among: count).map { [$0] } ?? []
  }
}
