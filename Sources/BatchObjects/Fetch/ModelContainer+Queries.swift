package import BatchIdentifiers
package import BatchSQLite

extension ModelContainer {
  /// The query for the identifiers of a descriptor, the index of its store, and what it fetches as
  /// a text; or the error of making it.
  package func query<Model: PersistentModel>(
    for descriptor: FetchDescriptor<Model>
  ) -> Result<(query: IdentifierQuery, store: Int, notation: String), BatchError> {
    do throws(BatchError) {
      let entity = try entity(named: Model.mapping.entityName)
      let query = try descriptor.query(of: entity, in: self)
      return .success((query, entity.store, try descriptor.notation(of: entity, in: self)))
    } catch {
      return .failure(error)
    }
  }

  /// The query for the identifiers of a request, the index of its store, and what it fetches as a
  /// text; or the error of making it.
  package func query(
    for request: FetchRequest
  ) -> Result<(query: IdentifierQuery, store: Int, notation: String), BatchError> {
    do throws(BatchError) {
      let entity = try entity(named: request.entity)
      let store = stores[entity.store]
      let connection = try Connection(path: store.path, options: store.options)
      let query = try IdentifierQuery(request, schema: store.schema, connection: connection)
      return .success((query, entity.store, request.notation))
    } catch {
      return .failure(error)
    }
  }

  /// The parts of a store's schema that work with objects depends on.
  ///
  /// These are the tables of the container's classes and of the entity; all tables if there are no
  /// classes and the entity is unknown.
  package func expectedSchema(
    ofStore store: Int,
    and entity: String?,
    in connection: Connection
  ) throws(BatchError) -> ExpectedSchema {
    let all = entities[store].values.sorted { $0.entity.name < $1.entity.name }
    let used = all.filter { $0.type != ManagedObject.self || $0.entity.name == entity }
    var uses: [(table: String, key: [String]?, columns: [String]?)] = []
    for model in used.isEmpty ? all : used {
      uses.append((model.entity.table, model.entity.key?.columns, model.columns))
      for relationship in relationships[store].all(of: model) {
        guard case .table(let pairs) = relationship.storage else { continue }
        uses.append((pairs.table, nil, [pairs.source, pairs.target]))
      }
    }
    return try ExpectedSchema(of: uses, in: connection)
  }
}
