import BatchIdentifiers
import BatchStore

/// Which identifiers a run by objects works through.
enum ContextSelection: Sendable {
  /// Those that were given; nil to go on with those of an unfinished run.
  case list(IdentifierList?)
  /// Those that a query finds, in the store at a place; an error if it could not be made.
  case query(Result<(query: IdentifierQuery, store: Int), BatchError>)
  /// Those that a closure returns.
  case closure(@Sendable () async throws -> IdentifierList)

  /// The place of the store that the identifiers are of, as far as that is known before they are.
  ///
  /// - Throws: `BatchError` of code `foreignIdentifier` for identifiers of another container.
  func store(of container: ModelContainer) throws(BatchError) -> Int {
    switch self {
    case .list(let list?): return try container.place(ofStoreOf: list)
    case .query(let query): return try query.get().store
    case .list(nil), .closure: return 0
    }
  }

  /// The name of the entity, as far as it is known before the identifiers are.
  var entity: String? {
    switch self {
    case .list(let list): list?.header.entityName
    case .query(let query): try? query.get().query.entity.name
    case .closure: nil
    }
  }
}

extension ModelContainer {
  /// The place of the store that the identifiers of a list are of.
  func place(ofStoreOf list: IdentifierList) throws(BatchError) -> Int {
    let uuid = list.header.storeIdentifier
    if let place = stores.firstIndex(where: { $0.identity.uuid == uuid }) { return place }
    throw BatchError(
      .foreignIdentifier,
      "the identifiers are of a store that the container does not have",
      at: uuid
    )
  }
}
