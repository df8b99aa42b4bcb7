import BatchRuns
public import BatchIdentifiers
import BatchPlatform
import BatchSQLite

/// Determines the keys of the rows of new objects.
///
/// Integer keys that are rowids are assigned, all keys of a table at once; UUIDs are generated if
/// the key is declared as one. Other keys must be set on the object.
enum KeyAllocation {
  /// The permanent identifiers of new objects of one store, within a transaction that holds the
  /// write lock.
  ///
  /// Throws `missingKey` for an object without a value for a key that must be set.
  static func identifiers(
    of objects: [ManagedObject],
    in connection: Connection
  ) throws(BatchError) -> [(object: ManagedObject, identifier: PersistentIdentifier)] {
    var identifiers: [ObjectIdentifier: PersistentIdentifier] = [:]
    var wanted: [String: (sequence: KeySequence, objects: [ManagedObject])] = [:]
    var waiting: [ManagedObject] = []
    for object in objects {
      if let identifier = try identifier(of: object, identifiers, in: connection) {
        identifiers[ObjectIdentifier(object)] = identifier
      } else if let entity = object.entity?.entity, entity.key?.isRowID == true,
        !object.isKeyReferring
      {
        let sequence = try KeySequence(of: entity)
        wanted[entity.table, default: (sequence, [])].objects.append(object)
      } else {
        waiting.append(object)
      }
    }
    for (table, (sequence, new)) in wanted.sorted(by: { $0.key < $1.key }) {
      let taken = objects.compactMap { object -> Int64? in
        guard object.entity?.entity.table == table,
          case .integer(let key) = identifiers[ObjectIdentifier(object)]?.key
        else { return nil }
        return key
      }
      let keys = try sequence.take(new.count, after: taken, in: connection)
      for (object, key) in zip(new, keys) {
        identifiers[ObjectIdentifier(object)] = object.entity?.space.identifier(.integer(key))
      }
    }
    // Keys that contain keys of other new objects come after these.
    while !waiting.isEmpty {
      var left: [ManagedObject] = []
      for object in waiting {
        if let identifier = try identifier(of: object, identifiers, in: connection) {
          identifiers[ObjectIdentifier(object)] = identifier
        } else {
          left.append(object)
        }
      }
      guard left.count < waiting.count else {
        throw missing("the key depends on itself through other keys", left[0])
      }
      waiting = left
    }
    return objects.compactMap { object in
      identifiers[ObjectIdentifier(object)].map { (object, $0) }
    }
  }

  /// The identifier with the object's key; nil if the key must be assigned, or depends on another
  /// new object.
  private static func identifier(
    of object: ManagedObject,
    _ identifiers: [ObjectIdentifier: PersistentIdentifier],
    in connection: Connection
  ) throws(BatchError) -> PersistentIdentifier? {
    if let identity = object.identity, !identity.isTemporary { return identity }
    guard let entity = object.entity else { throw ModelContext.foreign(object) }
    let key = try entity.entity.requireKey()
    var components: [KeyComponent] = []
    for (column, slot) in zip(key.columns, entity.keySlots) {
      if let reference = slot.flatMap({ object.references[$0] }), reference.modelContext != nil {
        let identifier = identifiers[ObjectIdentifier(reference)] ?? reference.persistentModelID
        guard let component = identifier.key?.components.first else { return nil }
        components.append(component)
      } else if let value = slot.flatMap({ object.changes[$0] }), value != .null {
        let types = entity.entity.affinities(ofColumn: column)
        components.append(KeyComponent(try keep(value, as: types, in: connection)))
      } else if key.isRowID {
        return nil
      } else if let value = entity.newUUID(ofColumn: column, at: slot) {
        components.append(KeyComponent(value))
      } else {
        throw missing(
          "column \(column.quotedForMessage) of the key has no value",
          object,
          remedy: slot == nil
            ? "map the column to a property, and set it before saving" : "set it before saving"
        )
      }
    }
    return entity.space.identifier(.encoded(EncodedKey(components)))
  }

  /// The value as a column stores it, such as `'5'` if 5 is set in a TEXT column.
  private static func keep(
    _ value: SQLValue,
    as types: [String],
    in connection: Connection
  ) throws(BatchError) -> SQLValue {
    switch (value, types.first) {
    case (_, nil), (.blob, _), (.text, "TEXT"), (.integer, "INTEGER"), (.real, "REAL"): return value
    default: break
    }
    // The comparison converts in the same way as storing does, and only without loss.
    let casts = types.map { "WHEN CAST(?1 AS \($0)) = ?1 THEN CAST(?1 AS \($0))" }
    let sql = "SELECT CASE \(casts.joined(separator: " ")) ELSE ?1 END"
    return try connection.value(sql, value) ?? value
  }

  private static func missing(
    _ message: String,
    _ object: ManagedObject,
    remedy: String? = nil
  ) -> BatchError {
    BatchError(.missingKey, message, at: object.persistentModelID.description, remedy: remedy)
  }
}

extension ManagedObject {
  fileprivate final var isKeyReferring: Bool {
    entity?.keySlots.contains { $0.map { references[$0] != nil } ?? false } ?? false
  }
}

extension Entity {
  /// The types that a column converts values to, in order; empty if it keeps values or the type is
  /// unknown.
  ///
  /// The rules are those of https://www.sqlite.org/datatype3.html §3.1.
  fileprivate func affinities(ofColumn column: String) -> [String] {
    let attribute = attributes.first { SQLName.equal($0.column, column) }
    guard let type = attribute?.type.uppercased(), !type.isEmpty else { return [] }
    func has(_ names: String...) -> Bool { names.contains { type.contains($0) } }
    if has("INT") { return ["INTEGER", "NUMERIC"] }
    if has("CHAR", "CLOB", "TEXT") { return ["TEXT"] }
    if has("BLOB") { return [] }
    return has("REAL", "FLOA", "DOUB") ? ["REAL"] : ["INTEGER", "NUMERIC"]
  }
}

extension ModelEntity {
  /// A new UUID for a key column that is declared as one; nil for other columns.
  fileprivate func newUUID(ofColumn column: String, at slot: Int?) -> SQLValue? {
    let codec = declared.first { $0.slot == slot }?.attribute.codec
    if let codec = codec as? AttributeCodec<UUID> { return codec.encode(UUID()) }
    let type = entity.attributes.first { SQLName.equal($0.column, column) }?.type
    guard codec == nil, type?.uppercased() == "UUID" else { return nil }
    return .text(UUID().uuidString)
  }
}

extension BatchError.Code {
  /// A new object has no key, and keys of its entity are not assigned.
  public static let missingKey = Self(rawValue: "missingKey")
}
