public import BatchIdentifiers
public import BatchStore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What one save, or one chunk of a batch request, changed in a store.
///
/// The counterpart of SwiftData's `DefaultHistoryTransaction` and Core Data's
/// `NSPersistentHistoryTransaction`. Saves and batch requests of contexts are recorded if the
/// container was opened with ``ModelConfiguration/tracksHistory``, one transaction per chunk of a
/// request; jobs are not, nor what foreign keys and triggers do.
public struct HistoryTransaction: Sendable {
  /// Where the transaction stands in the store's history.
  public let token: HistoryToken
  /// When it was saved, to the millisecond.
  public let timestamp: Date
  /// The context's ``ModelContext/author``.
  public let author: String?
  /// What it changed, in the order in which it was written.
  public let changes: [HistoryChange]
}

/// What became of one row.
public struct HistoryChange: Sendable, Hashable {
  /// The kinds of changes.
  public enum Kind: String, Sendable, Codable {
    case insert
    case update
    case delete
  }

  /// What was done.
  public let kind: Kind
  /// The row.
  public let identifier: PersistentIdentifier
  /// The attributes that an update set, sorted.
  public let updatedAttributes: [String]
  /// What remains of a deleted row: the attributes that its class preserves, see
  /// ``ModelProperty/preservedOnDeletion()``.
  public let tombstone: [String: SQLValue]
}

/// A position in a store's history, to continue from later.
public struct HistoryToken: Sendable, Hashable, Codable, Comparable {
  /// The store.
  public let storeIdentifier: String
  /// The number of the transaction, greater for later ones.
  public let transaction: Int64

  /// Whether the left one stands earlier, or is of a store whose UUID is less.
  public static func < (left: HistoryToken, right: HistoryToken) -> Bool {
    (left.storeIdentifier, left.transaction) < (right.storeIdentifier, right.transaction)
  }
}

extension ModelProperty {
  /// The same property, whose value is kept in the history when its row is deleted.
  ///
  /// SwiftData's `.preserveValueOnDeletion`.
  public func preservedOnDeletion() -> ModelProperty {
    var property = self
    property.attribute?.isPreserved = true
    return property
  }
}

extension BatchError.Code {
  /// The history after a token has been deleted in part: Core Data's error 134301.
  public static let historyTokenExpired = Self(rawValue: "historyTokenExpired")
}
