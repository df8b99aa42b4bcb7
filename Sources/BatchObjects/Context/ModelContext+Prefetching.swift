import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ModelContext {
  /// Reads the objects related to fetched ones, and keeps them until the next fetch with
  /// prefetching, since the context itself keeps no objects alive.
  ///
  /// Each related object costs one look-up. If other rows have the relationship in a column without
  /// an index, their table is read once.
  func prefetch<Model: PersistentModel>(
    _ properties: [PartialKeyPath<Model>],
    of models: [Model]
  ) throws(BatchError) {
    if properties.isEmpty { return }
    var related: [ManagedObject] = []
    for property in properties {
      guard let name = Model.mapping.attributes.relationship(property)?.name else {
        throw BatchError(
          .unknownRelationship,
          "\(Model.self).mapping registers no relationship with this key path",
          at: Model.mapping.entityName,
          remedy: "prefetch relationships only"
        )
      }
      var identifiers: [PersistentIdentifier] = []
      related += try readMembers(of: models) { relationship in
        if case .column = relationship.storage { return false }
        return relationship.name == name
      }
      for model in models {
        let relationship = try relationship(name, of: model)
        if case .column(let slot) = relationship.storage {
          guard let value = model.row?[slot], value != .null else { continue }
          let destination = relationship.destination
          identifiers.append(
            try destination.identifier(
              referredToBy: value,
              in: connection(to: destination.store)
            )
          )
        } else {
          related += try self.related(to: model, by: relationship)
        }
      }
      related += try objects(of: identifiers).values
    }
    prefetched = related
  }
}
