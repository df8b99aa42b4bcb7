import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// An entity of one store as contexts see it: the class of its objects, and the positions of
/// values.
///
/// An object keeps a stored value for each of the columns. The entities of a hierarchy have the
/// same columns, those of all their classes, so that one statement can read rows of any of them.
final class ModelEntity: Sendable {
  let entity: Entity
  let store: Int
  let space: IdentifierSpace
  let type: ManagedObject.Type
  let columns: [String]
  let slots: [String: Int]
  /// The declared attributes, whose values must fit.
  let declared: [(slot: Int, attribute: MappedAttribute)]
  /// The slot of the column that determines the concrete entity, and the names for its values.
  let concrete: (slot: Int, names: [SQLValue: String])?
  /// The other entities of the hierarchy, which share the keys of the table.
  let relatives: [IdentifierSpace]
  let descendants: [IdentifierSpace]
  /// The position of each key column; nil for a column that is not an attribute.
  let keySlots: [Int?]
  let generatedSlots: Set<Int>
  let versionSlot: Int?
  /// The storage classes that each column keeps unchanged.
  let keptClasses: [StorageClasses]
  /// The default of each column in a new row; nil for NULL and for a default that only SQLite
  /// knows.
  let defaults: [SQLValue?]
  let uniques: [UniqueColumns]
  let madeDefaults: [(slot: Int, make: @Sendable () -> SQLValue)]
  /// The storage classes that certainly fit declared attributes.
  private let alwaysFit: [(slot: Int, classes: StorageClasses)]
  private let isSettable: [Bool]

  /// Makes an entity without a class: the attributes of its table, of any type.
  init(_ entity: Entity, ofStore store: Int, identity: StoreIdentity) {
    self.entity = entity
    self.store = store
    space = IdentifierSpace(storeIdentifier: identity.uuid, entityName: entity.name)
    type = ManagedObject.self
    let columns = entity.family?.columns ?? entity.attributes.map(\.column)
    self.columns = columns
    slots = Dictionary(
      entity.attributes.compactMap { attribute in
        columns.firstIndex(of: attribute.column).map { (attribute.name, $0) }
      },
      uniquingKeysWith: { first, _ in first }
    )
    declared = []
    madeDefaults = []
    alwaysFit = []
    let family = entity.family
    concrete = family?.discriminator.flatMap { columns.firstIndex(of: $0) }.map { slot in
      let names = family?.names.map { (SQLValue.integer($0), $1) } ?? []
      return (slot, Dictionary(names, uniquingKeysWith: { first, _ in first }))
    }
    func spaces(_ belongs: (Int64) -> Bool) -> [IdentifierSpace] {
      (family?.names ?? [:]).filter { $1 != entity.name && belongs($0) }.map {
        IdentifierSpace(storeIdentifier: identity.uuid, entityName: $1)
      }
    }
    relatives = spaces { _ in true }
    descendants = spaces { number in family?.members.contains(number) ?? false }
    keySlots = Self.slots(of: entity.key?.columns ?? [], in: columns)
    generatedSlots = Self.generatedSlots(of: entity, in: columns)
    versionSlot = nil
    keptClasses = Self.keptClasses(of: columns, in: entity)
    defaults = Self.defaults(of: columns, in: entity)
    uniques = []
    isSettable = Self.settable(columns, of: entity, except: generatedSlots, keySlots)
  }

  /// Makes the entity of a class; throws `invalidMapping` for a column that the table does not
  /// have.
  init(
    _ mapping: ModelMapping,
    family: [ModelMapping],
    in table: Entity,
    ofStore store: Int,
    identity: StoreIdentity
  ) throws(BatchError) {
    var columns: [String] = []
    let discriminators = family.compactMap(\.discriminator?.column)
    for column in discriminators + family.flatMap(\.attributeList).map(\.column)
    where !columns.contains(where: { SQLName.equal($0, column) }) {
      guard table.attributes.contains(where: { SQLName.equal($0.column, column) }) else {
        throw Self.noColumn(column, of: table, mapping)
      }
      columns.append(column)
    }
    // Relationships need the keys of other objects, whether these are declared as attributes or
    // not.
    for column in family.flatMap(\.relationshipList).compactMap(\.column)
      + table.foreignKeys.map(\.column)
    where !columns.contains(where: { SQLName.equal($0, column) }) {
      guard let attribute = table.attributes.first(where: { SQLName.equal($0.column, column) })
      else { throw Self.noColumn(column, of: table, mapping) }
      columns.append(attribute.column)
    }
    self.columns = columns
    func slot(of column: String) -> Int {
      columns.firstIndex { SQLName.equal($0, column) } ?? 0
    }
    let declared: [(slot: Int, attribute: MappedAttribute)] = mapping.attributeList.map {
      (slot(of: $0.column), $0)
    }
    self.declared = declared
    madeDefaults = declared.compactMap { slot, attribute in
      attribute.makeDefault.map { (slot, $0) }
    }
    alwaysFit = declared.map { ($0.slot, $0.attribute.alwaysFit) }
    keySlots = Self.slots(of: table.key?.columns ?? [], in: columns)
    generatedSlots = Self.generatedSlots(of: table, in: columns)
    versionSlot = declared.first { $0.attribute.isVersion }?.slot
    keptClasses = Self.keptClasses(of: columns, in: table)
    defaults = Self.defaults(of: columns, in: table)
    uniques = try mapping.uniques.map { names throws(BatchError) in
      try UniqueColumns(names, of: mapping, in: table, columns)
    }
    slots = Dictionary(
      declared.map { ($0.attribute.name, $0.slot) },
      uniquingKeysWith: { _, last in last }
    )
    var entity = table.claimed(by: mapping)
    if let discriminator = mapping.discriminator {
      let members = family.filter {
        $0.entityName == mapping.entityName || $0.ancestors.contains(mapping.entityName)
      }
      let values = members.compactMap(\.discriminator?.value)
      entity.condition =
        "\(SQLName.quoted(discriminator.column)) IN (\(values.map(\.sql).joined(separator: ", ")))"
      concrete = (
        slot(of: discriminator.column),
        Dictionary(zip(values, members.map(\.entityName)), uniquingKeysWith: { first, _ in first })
      )
    } else {
      concrete = nil
    }
    let others = family.filter { $0.entityName != mapping.entityName }
    func spaces(_ mappings: [ModelMapping]) -> [IdentifierSpace] {
      mappings.map {
        IdentifierSpace(storeIdentifier: identity.uuid, entityName: $0.entityName)
      }
    }
    relatives = spaces(others)
    descendants = spaces(others.filter { $0.ancestors.contains(mapping.entityName) })
    self.entity = entity
    self.store = store
    space = IdentifierSpace(storeIdentifier: identity.uuid, entityName: entity.name)
    type = mapping.type
    isSettable = Self.settable(
      columns,
      of: entity,
      except: generatedSlots,
      keySlots + [versionSlot, concrete?.slot]
    )
  }

  private static func keptClasses(of columns: [String], in table: Entity) -> [StorageClasses] {
    columns.map { column in
      table.attributes.first { SQLName.equal($0.column, column) }?.keptClasses ?? []
    }
  }

  private static func settable(
    _ columns: [String],
    of entity: Entity,
    except generated: Set<Int>,
    _ others: [Int?]
  ) -> [Bool] {
    columns.indices.map {
      entity.kind == .table && !generated.contains($0) && !others.contains($0)
    }
  }

  func canAlwaysBeSet(at slot: Int) -> Bool { isSettable[slot] }

  private static func noColumn(
    _ column: String,
    of table: Entity,
    _ mapping: ModelMapping
  ) -> BatchError {
    BatchError(
      .invalidMapping,
      "table \(table.table.quotedForMessage) has no column \(column.quotedForMessage)",
      at: mapping.entityName,
      remedy: remedyForUnknownName(column, among: table.attributes.map(\.column), kind: "columns")
    )
  }

  func slot(ofColumn column: String) -> Int? {
    columns.firstIndex { SQLName.equal($0, column) }
  }

  private static func slots(of names: [String], in columns: [String]) -> [Int?] {
    names.map { name in columns.firstIndex { SQLName.equal($0, name) } }
  }

  private static func generatedSlots(of table: Entity, in columns: [String]) -> Set<Int> {
    let generated = table.attributes.filter(\.isGenerated).map(\.column)
    return Set(slots(of: generated, in: columns).compactMap(\.self))
  }

  /// The name of a row's entity if sub-entities share the table.
  func concreteName(of row: [SQLValue]) -> String {
    concrete.flatMap { $0.names[row[$0.slot]] } ?? entity.name
  }

  /// Refuses the row of a sub-entity, which needs an object of another class.
  func requireOwn(_ row: [SQLValue], of identifier: PersistentIdentifier) throws(BatchError) {
    let name = concreteName(of: row)
    guard name != entity.name else { return }
    throw BatchError(
      .modelTypeMismatch,
      "the row is one of entity \(name.quotedForMessage) now",
      at: identifier.description,
      remedy: "get the object from the context again"
    )
  }

  /// Refuses a row with a value that does not fit its attribute.
  func validate(_ row: [SQLValue], of identifier: PersistentIdentifier) throws(BatchError) {
    // Nearly all rows need no further check.
    if alwaysFit.allSatisfy({ $0.classes.contains(row[$0.slot].storageClass) }) { return }
    for (slot, attribute) in declared where !attribute.codec.fits(row[slot]) {
      throw BatchError(
        .valueMismatch,
        "attribute \(attribute.name.quotedForMessage) is declared \(attribute.codec.typeName),"
          + " and the row has \(misfit(row[slot], at: slot))",
        at: identifier.description,
        remedy: "correct the row, or declare the attribute with the type of its values"
      )
    }
  }

  /// Describes a value that does not fit, without revealing it.
  func misfit(_ value: SQLValue, at slot: Int) -> String {
    if value.isNaN { return "NaN" }
    guard value != .null, keptClasses[slot].contains(value.storageClass) else {
      return value.className
    }
    return "\(value.className) that is none"
  }
}

extension BatchError.Code {
  /// The mapping of a class does not fit the store.
  public static let invalidMapping = Self(rawValue: "invalidMapping")
  /// A stored value does not have the type that its attribute declares.
  public static let valueMismatch = Self(rawValue: "valueMismatch")
}

extension Entity {
  fileprivate func claimed(by mapping: ModelMapping) -> Entity {
    let attributes = mapping.attributeList.compactMap { mapped in
      self.attributes.first { SQLName.equal($0.column, mapped.column) }?.renamed(mapped.name)
    }
    return renamed(mapping.entityName, attributes: attributes)
  }
}
