public import BatchIdentifiers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How new objects get the keys of their rows.
///
/// Integer keys that are rowids are given out, all of a table at once, and UUIDs are made where the
/// key is declared as one. Other keys are set on the object.
enum KeyAllocation {
  /// The permanent identifiers of new objects of one store, inside a transaction that holds the
  /// write lock.
  ///
  /// - Throws: `BatchError` with code `missingKey` for an object whose key must be set and is not.
  static func identifiers(
    of objects: [ManagedObject],
    in connection: Connection
  ) throws(BatchError) -> [(object: ManagedObject, identifier: PersistentIdentifier)] {
    var wanted: [String: (sequence: KeySequence, count: Int)] = [:]
    var identifiers: [PersistentIdentifier?] = []
    for object in objects {
      let identifier = try identifier(of: object)
      identifiers.append(identifier)
      if identifier == nil, let entity = object.entity?.entity {
        let sequence = try KeySequence(of: entity)
        wanted[entity.table, default: (sequence, 0)].count += 1
      }
    }
    var keys: [String: Range<Int64>] = [:]
    for (table, wanted) in wanted {
      keys[table] = try wanted.sequence.take(wanted.count, in: connection)
    }
    var result: [(ManagedObject, PersistentIdentifier)] = []
    for (object, identifier) in zip(objects, identifiers) {
      if let identifier {
        result.append((object, identifier))
      } else if let entity = object.entity, let key = keys[entity.entity.table]?.popFirst() {
        result.append((object, entity.space.identifier(.integer(key))))
      }
    }
    return result
  }

  /// The identifier by the key that the object has, or nil if it is to be given one.
  private static func identifier(
    of object: ManagedObject
  ) throws(BatchError) -> PersistentIdentifier? {
    if let identity = object.identity, !identity.isTemporary { return identity }
    guard let entity = object.entity else { throw ModelContext.foreign(object) }
    let key = try entity.entity.requireKey()
    var components: [KeyComponent] = []
    for (column, slot) in zip(key.columns, entity.keySlots) {
      if let value = slot.flatMap({ object.changes[$0] }), value != .null {
        components.append(KeyComponent(value))
      } else if key.isRowID {
        return nil
      } else if let value = entity.newUUID(ofColumn: column, at: slot) {
        components.append(KeyComponent(value))
      } else {
        throw BatchError(
          .missingKey,
          "column \(column.quotedForMessage) of the key has no value",
          at: object.persistentModelID.description,
          remedy: slot == nil
            ? "map the column to a property, and set it before saving" : "set it before saving"
        )
      }
    }
    return entity.space.identifier(.encoded(EncodedKey(components)))
  }
}

extension ModelEntity {
  /// A new UUID for a column of the key that is declared as one.
  fileprivate func newUUID(ofColumn column: String, at slot: Int?) -> SQLValue? {
    let codec = declared.first { $0.slot == slot }?.attribute.codec
    if let codec = codec as? AttributeCodec<UUID> { return codec.encode(UUID()) }
    let type = entity.attributes.first { SQLName.equal($0.column, column) }?.type
    guard codec == nil, type?.uppercased() == "UUID" else { return nil }
    return .text(UUID().uuidString)
  }
}

extension KeyComponent {
  /// The component of a key with a value.
  fileprivate init(_ value: SQLValue) {
    switch value {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .real(let value): self = .real(value)
    case .text(let value): self = .text(value)
    case .blob(let value): self = .blob(value)
    }
  }
}

extension BatchError.Code {
  /// A new object has no key, and is of an entity whose keys are not given out.
  public static let missingKey = Self(rawValue: "missingKey")
}
