public import BatchIdentifiers

/// The kind of result of a batch request, as in Core Data.
public enum BatchResultType: Sendable {
  /// Only success, by returning: the cheapest kind, and Core Data's default.
  case status
  /// The number of rows.
  case count
  /// The identifiers and the number of the rows.
  case identifiers
}

/// The result of a batch request.
public struct BatchResult: Sendable {
  /// The number of changed rows of the request's entity, including sub-entities; nil if only the
  /// status was requested.
  public internal(set) var count: Int?
  /// The identifiers of these rows, if requested.
  ///
  /// They have the entity of the request, even for a row of a sub-entity. For a deletion, they
  /// include rows of the entity that a cascade reached.
  public internal(set) var identifiers: IdentifierList?
  /// The identifiers of other rows deleted by delete rules, one list per entity, if requested.
  public internal(set) var cascaded: [IdentifierList] = []
  /// The identifiers of rows whose relationships were nullified by delete rules, one list per
  /// relationship, if requested.
  public internal(set) var nullified: [IdentifierList] = []
  let kind: HistoryChange.Kind
}

extension ModelContext {
  /// Updates objects with the changes of a batch request, like merging a save.
  ///
  /// - Precondition: The request returned identifiers; otherwise there is nothing to merge.
  /// - Complexity: O(*n*) in the number of identifiers, looked up a thousand at a time.
  public func mergeChanges(_ result: BatchResult) {
    let own = result.identifiers.map { [$0] } ?? []
    // Inserted rows may have been updates, or have the identifiers of objects whose rows were gone.
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
