import BatchIdentifiers
import BatchStore

extension ModelContext {
  /// Reads the objects that fetched ones are related to, and keeps them until the next fetch that
  /// prefetches: the context itself keeps no object alive.
  ///
  /// - Complexity: One look-up for each related object, or one statement for each fetched object
  ///   where the relationship is kept in other rows.
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
