import BatchIdentifiers
import BatchStore
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A record of a checkpoint that adds to the identifiers that failed.
struct FailureRecord: Codable {
  static let kind: UInt8 = 2
  /// The most identifiers of one record, so that it stays far below the greatest length of one.
  static let maximumCount = 1000

  /// Whether those of earlier records no longer count.
  var replaces: Bool
  var failed: [FailedIdentifier]
}

extension FailureRecord {
  init(_ record: IdentifierFile.Record, of path: FilePath) throws(BatchError) {
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
  func failedIdentifiers() throws(BatchError) -> [FailedIdentifier] {
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
