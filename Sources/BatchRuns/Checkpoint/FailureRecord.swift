package import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// A checkpoint record of what has changed among the failed identifiers.
package struct FailureRecord: Codable {
  package static let kind: UInt8 = 2
  /// Keeps a record far below the maximum length.
  package static let maximumCount = 1000

  package var failed: [FailedIdentifier]
  /// The positions that have succeeded since; nil for none.
  package var corrected: [Int]?
}

extension FailureRecord {
  package init(_ record: IdentifierFile.Record, of path: FilePath) throws(BatchError) {
    do {
      self = try JSONDecoder().decode(FailureRecord.self, from: Data(record.payload))
    } catch {
      throw BatchError(
        .damagedFile,
        "a record of failed identifiers cannot be read",
        at: path.string,
        remedy: "it was written by another version, or by hand",
        underlying: error
      )
    }
  }
}

extension IdentifierFile {
  package func failedIdentifiers() throws(BatchError) -> [FailedIdentifier] {
    var failed: [Int: FailedIdentifier] = [:]
    try forEachRecord { record throws(BatchError) in
      guard record.kind == FailureRecord.kind else { return }
      let failures = try FailureRecord(record, of: path)
      for position in failures.corrected ?? [] { failed[position] = nil }
      for failure in failures.failed { failed[failure.position] = failure }
    }
    return failed.values.sorted { $0.position < $1.position }
  }
}
