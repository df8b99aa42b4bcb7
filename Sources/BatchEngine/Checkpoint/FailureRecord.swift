package import BatchIdentifiers
package import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A record of a checkpoint that adds to the identifiers that failed.
package struct FailureRecord: Codable {
  package static let kind: UInt8 = 2
  /// The most identifiers of one record, so that it stays far below the greatest length of one.
  package static let maximumCount = 1000

  /// Whether those of earlier records no longer count.
  package var replaces: Bool
  package var failed: [FailedIdentifier]
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
  /// The identifiers that a checkpoint says have failed, ascending.
  package func failedIdentifiers() throws(BatchError) -> [FailedIdentifier] {
    var failed: [Int: FailedIdentifier] = [:]
    try forEachRecord { record throws(BatchError) in
      guard record.kind == FailureRecord.kind else { return }
      let failures = try FailureRecord(record, of: path)
      if failures.replaces { failed.removeAll() }
      for failure in failures.failed { failed[failure.position] = failure }
    }
    return failed.values.sorted { $0.position < $1.position }
  }
}
