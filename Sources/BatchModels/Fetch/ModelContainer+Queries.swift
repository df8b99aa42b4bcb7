package import BatchIdentifiers
package import BatchStore

extension ModelContainer {
  /// The query for the identifiers of a descriptor, and the index of its store; an error if the
  /// query cannot be built.
  package func query<Model: PersistentModel>(
    for descriptor: FetchDescriptor<Model>
  ) -> Result<(query: IdentifierQuery, store: Int), BatchError> {
    do throws(BatchError) {
      let entity = try entity(named: Model.mapping.entityName)
      return .success((try descriptor.query(of: entity, in: self), entity.store))
    } catch {
      return .failure(error)
    }
  }

  /// The query for the identifiers of a request, and the index of its store; an error if the query
  /// cannot be built.
  package func query(
    for request: FetchRequest
  ) -> Result<(query: IdentifierQuery, store: Int), BatchError> {
    do throws(BatchError) {
      let entity = try entity(named: request.entity)
      let store = stores[entity.store]
      let connection = try Connection(path: store.path, options: store.options)
      let query = try IdentifierQuery(request, schema: store.schema, connection: connection)
      return .success((query, entity.store))
    } catch {
      return .failure(error)
    }
  }
}
