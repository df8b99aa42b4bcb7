public import BatchIdentifiers

/// What a batch request reports about the rows that it changed: Core Data's result types.
public enum BatchResultType: Sendable {
  /// No more than that it succeeded, which is what returning says: the cheapest, and Core Data's
  /// default.
  case status
  /// How many there are.
  case count
  /// Which they are, and how many.
  case identifiers
}

/// What a batch request did.
public struct BatchResult: Sendable {
  /// How many rows of the request's entity were changed, sub-entities included; nil if only the
  /// status was asked for.
  public internal(set) var count: Int?
  /// The identifiers of those rows, if requested.
  ///
  /// They name the request's entity; a row's own may be a sub-entity. For a deletion, they include
  /// what a cascade reached within the entity.
  public internal(set) var identifiers: IdentifierList?
  /// The identifiers of other rows that delete rules deleted, a list for each entity, if identifiers
  /// were asked for.
  public internal(set) var cascaded: [IdentifierList] = []
  /// The identifiers of the rows that delete rules related to nothing, a list for each relationship,
  /// if identifiers were asked for.
  public internal(set) var nullified: [IdentifierList] = []
  /// What the request does to its rows.
  let kind: HistoryChange.Kind
}

extension ModelContext {
  /// Updates objects with what a batch request did, as merging a save does.
  ///
  /// - Precondition: The request was asked for identifiers; there is nothing to merge otherwise.
  /// - Complexity: O(*n*) in the number of identifiers; a thousand of them are looked up at a time.
  public func mergeChanges(_ result: BatchResult) {
    let own = result.identifiers.map { [$0] } ?? []
    // Inserted rows may have the identifiers of objects whose rows were gone, or were updated.
    let updated = result.nullified + (result.kind == .delete ? [] : own)
    let deleted = result.cascaded + (result.kind == .delete ? own : [])
    for list in updated {
      Self.forEachSlice(of: list) { mergeChanges(ModelChanges(updated: $0)) }
    }
    for list in deleted {
      Self.forEachSlice(of: list) { mergeChanges(ModelChanges(deleted: $0)) }
    }
  }

  private static func forEachSlice(
    of list: IdentifierList,
    _ body: ([PersistentIdentifier]) -> Void
  ) {
    for start in stride(from: 0, to: list.count, by: 1_000) {
      body(Array(list[start..<min(start + 1_000, list.count)]))
    }
  }
}
