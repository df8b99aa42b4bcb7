public import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

extension ModelContainer {
  /// Returns the identifier for a URI, if the container has the entity.
  ///
  /// It is nil for another scheme, for a store or entity that the container does not have, for an
  /// object that was never saved, and for a key that the entity cannot have. Whether the row exists
  /// is not checked.
  public func identifier(forURI uri: URL) -> PersistentIdentifier? {
    identifier(for: uri.absoluteString)
  }

  /// Returns the identifier for the text of a URI; see ``identifier(forURI:)``.
  public func identifier(for uri: String) -> PersistentIdentifier? {
    guard let identifier = PersistentIdentifier(uriString: uri) else { return nil }
    return (try? resolve(identifier)) == nil ? nil : identifier
  }

  /// Returns the identifier of a row by its key, in the only store that has the entity.
  ///
  /// Whether the row exists is not checked.
  ///
  /// - Throws: `BatchError` with code `unknownEntity` if no store has the entity, `ambiguousStore`
  ///   if several stores have it, `invalidIdentifier` if the entity cannot have such a key.
  public func identifier(
    ofEntity name: String,
    key: PrimaryKey
  ) throws(BatchError) -> PersistentIdentifier {
    let identifier = try entity(named: name).space.identifier(key)
    _ = try resolve(identifier)
    return identifier
  }

  /// The entity of an identifier.
  ///
  /// - Throws: `BatchError` with code `foreignIdentifier` if the container does not have its store,
  ///   `unknownEntity` if the store has no such entity, `invalidIdentifier` if the entity cannot
  ///   have such a key.
  func resolve(
    _ identifier: PersistentIdentifier
  ) throws(BatchError) -> ModelEntity {
    guard !identifier.isTemporary, !identifier.isDeveloperProvided,
      let index = stores.firstIndex(where: { $0.identity.uuid == identifier.storeIdentifier })
    else {
      throw BatchError(
        .foreignIdentifier,
        identifier.isTemporary
          ? "the identifier belongs to an unsaved object"
          : "the identifier belongs to none of the container's stores",
        at: identifier.description,
        remedy: identifier.isTemporary
          ? "save the object and use its new identifier"
          : "open a container on the store with this UUID"
      )
    }
    let name = identifier.entityName
    guard let model = model(named: name, inStore: index) else {
      let entity = try stores[index].schema.entity(named: name)
      throw BatchError(
        .unknownEntity,
        "there is no entity \(name.quotedForMessage)",
        at: identifier.description,
        remedy: "did you mean \(entity.name.quotedForMessage)?"
      )
    }
    let entity = model.entity
    guard let key = identifier.key, entity.admits(key) else {
      throw BatchError(
        .invalidIdentifier,
        "the key does not fit entity \(entity.name.quotedForMessage)",
        at: identifier.description
      )
    }
    return model
  }
}

extension ModelContainer {
  /// The entity with a name; for the name of a table, as jobs use it, the class of its rows.
  func model(named name: String, inStore store: Int) -> ModelEntity? {
    if let model = entities[store][name] { return model }
    let classes = entities[store].values.filter { SQLName.equal($0.entity.table, name) }
    // Of a hierarchy, the class that all others extend.
    return classes.first { $0.descendants.count == classes.count - 1 }
  }

  /// A list with the name that identifiers have in the container.
  func named(_ list: IdentifierList) -> IdentifierList {
    let name = list.header.entityName
    for (index, store) in stores.enumerated()
    where store.identity.uuid == list.header.storeIdentifier && entities[index][name] == nil {
      if let model = model(named: name, inStore: index) {
        return list.renamed(to: model.entity.name)
      }
    }
    return list
  }
}

extension Entity {
  func admits(_ candidate: PrimaryKey) -> Bool {
    guard let key else { return false }
    return switch candidate {
    case .integer: key.columns.count == 1
    case .encoded(let encoded): !key.isRowID && encoded.components.count == key.columns.count
    }
  }
}
