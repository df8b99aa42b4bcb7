public import BatchRuns
public import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

/// The changes of one save, or of one chunk of a batch request, in a store.
///
/// The counterpart of SwiftData's `DefaultHistoryTransaction` and Core Data's
/// `NSPersistentHistoryTransaction`. Saves and batch requests of contexts are recorded if the
/// container was opened with ``ModelConfiguration/tracksHistory``, one transaction per chunk of a
/// request; jobs, foreign-key actions and triggers are not recorded.
public struct HistoryTransaction: Sendable {
  /// The transaction's position in the store's history.
  public let token: HistoryToken
  /// When it was saved, to the millisecond.
  public let timestamp: Date
  /// The context's ``ModelContext/author``.
  public let author: String?
  /// The changes, in the order of writing.
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
  /// The row's identifier.
  public let identifier: PersistentIdentifier
  /// The attributes that an update set, sorted.
  public let updatedAttributes: [String]
  /// The preserved values of a deleted row: the attributes that its class preserves, see
  /// ``ModelProperty/preservedOnDeletion()``.
  public let tombstone: [String: SQLValue]
}

/// A position in a store's history, from which to continue later.
public struct HistoryToken: Sendable, Hashable, Codable, Comparable {
  /// The store.
  public let storeIdentifier: String
  /// The number of the transaction, greater for later ones.
  public let transaction: Int64
  /// What tells it from another one of its number, which a restored backup may get.
  let mark: Int64

  /// Whether the left one is earlier, or belongs to a store with a smaller UUID.
  public static func < (left: HistoryToken, right: HistoryToken) -> Bool {
    (left.storeIdentifier, left.transaction) < (right.storeIdentifier, right.transaction)
  }
}

extension ModelProperty {
  /// The same property, whose value the history keeps when its row is deleted.
  ///
  /// SwiftData's `.preserveValueOnDeletion`.
  public func preservedOnDeletion() -> ModelProperty {
    var property = self
    property.attribute?.isPreserved = true
    return property
  }
}

extension BatchError.Code {
  /// Part of the history after a token has been deleted: Core Data's error 134301.
  public static let historyTokenExpired = Self(rawValue: "historyTokenExpired")
}
