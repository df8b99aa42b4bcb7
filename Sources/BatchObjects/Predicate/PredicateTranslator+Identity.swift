import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension PredicateTranslator {
  /// Whether two terms are the same object; at least one of them is an object or its identifier.
  func identity<Value>(
    of left: Term<Value>,
    _ right: Term<Value>
  ) throws(BatchError) -> SQLText {
    switch (left, right) {
    case (.object(let object), .constant(let value)), (.constant(let value), .object(let object)),
      (.identifier(let object), .constant(let value)),
      (.constant(let value), .identifier(let object)):
      return try identity(of: object, amongElementsOf: CollectionOfOne(value))
    case (.object(let left), .object(let right)),
      (.identifier(let left), .identifier(let right)):
      guard left.entity.space == right.entity.space else {
        throw .unsupported("a comparison of objects of two entities")
      }
      let parts = zip(left.key, right.key).map { "\($0) IS \($1) COLLATE BINARY" }
      return SQLText("(\(parts.joined(separator: " AND ")))")
    default:
      throw .unsupported("a comparison of an object with an attribute")
    }
  }

  /// Whether an object is among some identifiers or objects; nil stands for no object.
  ///
  /// An identifier of an entity also stands for objects of its sub-entities, as in look-ups.
  func identity(
    of object: ObjectTerm,
    amongElementsOf elements: some Sequence
  ) throws(BatchError) -> SQLText {
    if let list = elements as? IdentifierList {
      guard let condition = try condition(for: list.space, of: object) else { return .false }
      return .and(object.isPresent, .and(condition, try keys(of: object, in: list)))
    }
    var spaces: [IdentifierSpace: [PrimaryKey]] = [:]
    var hasNil = false
    for element in elements {
      let identifier =
        element as? PersistentIdentifier ?? (element as? ManagedObject)?.persistentModelID
      if let identifier {
        // The identifier of an unsaved object belongs to no row.
        if let key = identifier.key { spaces[identifier.space, default: []].append(key) }
      } else {
        hasNil = true
      }
    }
    var any = SQLText.false
    for (space, keys) in spaces.sorted(by: { $0.key.entityName < $1.key.entityName }) {
      guard let condition = try condition(for: space, of: object) else { continue }
      any = .or(any, .and(condition, try self.keys(of: object, among: keys)))
    }
    any = .and(object.isPresent, any)
    return hasNil ? .or(object.isPresent.negated, any) : any
  }

  /// The condition for rows of the entity that have identifiers of this space; nil if no row can.
  private func condition(
    for space: IdentifierSpace,
    of object: ObjectTerm
  ) throws(BatchError) -> SQLText? {
    let entity = object.entity
    if space == entity.space { return .true }
    guard space.storeIdentifier == entity.space.storeIdentifier,
      let other = container.model(named: space.entityName, inStore: entity.store),
      SQLName.equal(other.entity.table, entity.entity.table)
    else { return nil }
    let names = entity.concrete?.names ?? [:]
    let others = other.concrete?.names ?? [:]
    if names.keys.allSatisfy({ others[$0] != nil }) { return .true }
    guard let concrete = other.concrete, others.keys.allSatisfy({ names[$0] != nil }) else {
      return nil
    }
    let places = others.keys.map { place($0) }.joined(separator: ", ")
    return SQLText("(\(object.column(other.columns[concrete.slot])) IN (\(places)))")
  }

  // MARK: Keys

  /// The maximum number of keys other than rowids to look up; with more keys, each row is tested.
  ///
  /// Looking up a text takes about as long as testing five rows, and the number of rows is not
  /// known here.
  private static var greatestLookUpCount: Int { 100_000 }

  private func keys(
    of object: ObjectTerm,
    in list: IdentifierList
  ) throws(BatchError) -> SQLText {
    let key = try object.entity.entity.requireKey()
    if list.isSorted, !looksUpIdentifiers || !key.isRowID && list.count > Self.greatestLookUpCount {
      return SQLText(call(object) { key throws(BatchError) in try list.contains(key: key) })
    }
    if looksUpIdentifiers, key.isRowID, list.header.keyKind == .integer {
      var text: [UInt8] = [UInt8(ascii: "[")]
      var position = 0
      while position < list.count {
        let end = min(position + 4_096, list.count)
        Self.append(try list.integers(in: position..<end), to: &text)
        position = end
      }
      return rowIDs(of: object, text)
    }
    return try keys(of: object, among: list.compactMap(\.key))
  }

  private func keys(
    of object: ObjectTerm,
    among keys: [PrimaryKey]
  ) throws(BatchError) -> SQLText {
    let entity = object.entity.entity
    let keys = keys.filter(entity.admits)
    if keys.isEmpty { return .false }
    if looksUpIdentifiers, try entity.requireKey().isRowID {
      var text: [UInt8] = [UInt8(ascii: "[")]
      let integers = keys.compactMap { if case .integer(let key) = $0 { key } else { nil } }
      if integers.count == 1 {
        return SQLText("(\(object.key[0]) = \(place(.integer(integers[0]))))")
      }
      Self.append(integers, to: &text)
      return rowIDs(of: object, text)
    }
    if keys.count == 1 {
      let parts = zip(object.key, keys[0].components).map { part($0, is: SQLValue($1)) }
      return SQLText("(\(parts.joined(separator: " AND ")))")
    }
    let set = Set(keys)
    let isOne = call(object) { set.contains($0) }
    guard looksUpIdentifiers, keys.count <= Self.greatestLookUpCount else { return SQLText(isOne) }
    return SQLText("(\(lookUp(of: object, among: keys.map(\.components))) AND \(isOne))")
  }

  /// Whether the key is among some keys by the collations of its columns, so that an index can be
  /// used.
  ///
  /// SQLite reads the keys once from a closure, and looks up each of them.
  private func lookUp(of object: ObjectTerm, among keys: [[KeyComponent]]) -> String {
    let parts = object.key.indices.map { part in
      let function = place { row throws(BatchError) in
        guard case .integer(let index)? = row.first else { return .null }
        return SQLValue(keys[Int(index)][part])
      }
      return "\(SwiftFunction.sqlName)(\(function), _index)"
    }
    return """
      (\(object.key.joined(separator: ", "))) IN (\
      WITH RECURSIVE _keys(_index) AS (\
      SELECT 0 UNION ALL SELECT _index + 1 FROM _keys WHERE _index + 1 < \(keys.count)) \
      SELECT \(parts.joined(separator: ", ")) FROM _keys)
      """
  }

  private static func append(_ integers: [Int64], to text: inout [UInt8]) {
    for integer in integers {
      if text.count > 1 { text.append(UInt8(ascii: ",")) }
      text += String(integer).utf8
    }
  }

  /// Any number of rowids fits into one JSON text; SQLite looks up each of them.
  private func rowIDs(of object: ObjectTerm, _ text: [UInt8]) -> SQLText {
    let list = place(.text(String(decoding: text + [UInt8(ascii: "]")], as: UTF8.self)))
    return SQLText("(\(object.key[0]) IN (SELECT value FROM json_each(\(list))))")
  }

  /// Whether a part of a key is exactly the value, regardless of the column's collation.
  ///
  /// 1 and 1.0, or `a` and `A`, are different keys; an index finds the candidates by the collation.
  private func part(_ part: String, is value: SQLValue) -> String {
    let place = place(value)
    return
      "\(part) IS \(place) AND \(part) IS \(place) COLLATE BINARY"
      + " AND typeof(\(part)) IS typeof(\(place))"
  }

  private func call(
    _ object: ObjectTerm,
    _ body: @escaping (PrimaryKey) throws(BatchError) -> Bool
  ) -> String {
    let function = place { row throws(BatchError) in
      let components = row.map(KeyComponent.init)
      let key: PrimaryKey =
        if components.count == 1, case .integer(let key) = components[0] {
          .integer(key)
        } else {
          .encoded(EncodedKey(components))
        }
      return .integer(try body(key) ? 1 : 0)
    }
    return "\(SwiftFunction.sqlName)(\(([function] + object.key).joined(separator: ", ")))"
  }
}
