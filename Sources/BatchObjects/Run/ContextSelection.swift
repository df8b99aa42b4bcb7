import BatchJobs
import BatchPipeline
import BatchIdentifiers
import BatchSQLite

enum ContextSelection: Sendable {
  /// The given identifiers; nil to resume an unfinished run.
  case list(IdentifierList?)
  /// The results of a query, the index of its store and the fetch as a text, or the error of making
  /// the query.
  case query(Result<(query: IdentifierQuery, store: Int, notation: String), BatchError>)
  case closure(@Sendable () async throws -> IdentifierList)
  /// No rows: the records of a sequence become rows.
  case records(RecordSource)

  /// The index of the store, as far as it is known before the identifiers are; throws
  /// `foreignIdentifier` for those of another container.
  func store(of container: ModelContainer) throws(BatchError) -> Int {
    switch self {
    case .list(let list?): return try container.place(ofStoreOf: list)
    case .query(let query): return try query.get().store
    case .records(let source):
      return try container.writableEntity(named: source.mapping.entityName).store
    case .list(nil), .closure: return 0
    }
  }

  /// The fetch as a text; nil for identifiers that are given or that a closure selects.
  var fetch: String? {
    if case .query(.success(let query)) = self { query.notation } else { nil }
  }

  var isOrdered: Bool {
    if case .query(.success(let query)) = self { query.query.isOrdered } else { false }
  }

  var entity: String? {
    switch self {
    case .list(let list): list?.header.entityName
    case .query(let query): try? query.get().query.entity.name
    case .records(let source): source.mapping.entityName
    case .closure: nil
    }
  }
}

extension ModelContainer {
  func place(ofStoreOf list: IdentifierList) throws(BatchError) -> Int {
    let uuid = list.header.storeIdentifier
    if let place = stores.firstIndex(where: { $0.identity.uuid == uuid }) { return place }
    throw BatchError(
      .foreignIdentifier,
      "the identifiers belong to a store that the container does not have",
      at: uuid
    )
  }
}
