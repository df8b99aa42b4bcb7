public import BatchRuns
public import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

/// The changes of one save, or of one chunk of a batch request, in a store.
///
/// It corresponds to SwiftData's `DefaultHistoryTransaction` and Core Data's
/// `NSPersistentHistoryTransaction`. Saves and batch requests of contexts are recorded if the
/// container was opened with ``ModelConfiguration/tracksHistory``; a batch request has one
/// transaction per chunk. Jobs, foreign-key actions and triggers are not recorded.
public struct HistoryTransaction: Sendable {
  /// The position of the transaction in the history of the store.
  public let token: HistoryToken
  /// The time of the save, to the millisecond.
  public let timestamp: Date
  /// The ``ModelContext/author`` of the context.
  public let author: String?
  /// The changes in the order in which they were written.
  public let changes: [HistoryChange]
}

/// The change of one row.
public struct HistoryChange: Sendable, Hashable {
  /// The kinds of changes.
  public enum Kind: String, Sendable, Codable {
    case insert
    case update
    case delete
  }

  /// The kind of change.
  public let kind: Kind
  /// The identifier of the row.
  public let identifier: PersistentIdentifier
  /// The attributes that an update has set, sorted by name.
  public let updatedAttributes: [String]
  /// The preserved values of a deleted row; see ``ModelProperty/preservedOnDeletion()``.
  public let tombstone: [String: SQLValue]
}

/// A position in the history of a store, from which to continue later.
public struct HistoryToken: Sendable, Hashable, Codable, Comparable {
  /// The UUID of the store.
  public let storeIdentifier: String
  /// The number of the transaction, which is greater for later ones.
  public let transaction: Int64
  /// Distinguishes transactions with the same number, which a restored backup may produce.
  let mark: Int64

  /// Orders tokens by store, then by transaction.
  public static func < (left: HistoryToken, right: HistoryToken) -> Bool {
    (left.storeIdentifier, left.transaction) < (right.storeIdentifier, right.transaction)
  }
}

extension ModelProperty {
  /// Returns the same property, with its value preserved in the history when the row is deleted.
  ///
  /// This is SwiftData's `.preserveValueOnDeletion`.
  public func preservedOnDeletion() -> ModelProperty {
    var property = self
    property.attribute?.isPreserved = true
    return property
  }
}

extension BatchError.Code {
  /// Part of the history after the token was deleted: Core Data's error 134301.
  public static let historyTokenExpired = Self(rawValue: "historyTokenExpired")
}
