/// How a class's objects are kept: the entity's name, its table, and a column for each property.
///
/// Classes of a hierarchy share a table, and a discriminator column tells their rows apart. A
/// mapping that extends another one has its properties too.
///
///     class var mapping: ModelMapping { carMapping }
///     private let carMapping = ModelMapping(
///       Car.self, entity: "Car", table: "cars", discriminator: ("kind", .text("car")),
///       properties: [.attribute("maker", \.maker)])
///     private let sportCarMapping = ModelMapping(
///       SportCar.self, entity: "SportCar", extending: carMapping, discriminator: .text("sport"),
///       properties: [.attribute("topSpeed", \.topSpeed)])
public struct ModelMapping: Sendable {
  /// What tells the rows of one entity from those of others in the same table.
  struct Discriminator: Sendable {
    let column: String
    let value: SQLValue
  }

  /// The name of the entity, which identifiers carry.
  public let entityName: String
  /// The table, or the view, of the rows.
  public let table: String
  /// The names of the entities that this one extends, the nearest first.
  let ancestors: [String]
  let discriminator: Discriminator?
  let type: any PersistentModel.Type
  /// Every attribute once, those of extended mappings first.
  let attributeList: [MappedAttribute]
  /// The attributes by the key paths of their properties: key paths of computed properties have no
  /// names of their own, and can be looked up all the same.
  let attributes: KeyPathTable

  /// Every relationship once, those of extended mappings first.
  let relationshipList: [MappedRelationship]

  /// The name of the entity at the top of the hierarchy.
  var root: String { ancestors.last ?? entityName }

  /// Maps a class to a table.
  public init<Model: PersistentModel>(
    _ type: Model.Type,
    entity: String,
    table: String,
    discriminator: (column: String, value: SQLValue)? = nil,
    properties: [ModelProperty<Model>]
  ) {
    entityName = entity
    self.table = table
    ancestors = []
    self.discriminator = discriminator.map { Discriminator(column: $0.column, value: $0.value) }
    self.type = type
    attributeList = properties.compactMap(\.attribute)
    relationshipList = properties.compactMap(\.relationship)
    attributes = KeyPathTable().adding(properties)
  }

  /// Maps a class to those rows of another mapping's table that have a discriminator of their own.
  ///
  /// - Precondition: The mapping that is extended has a discriminator.
  public init<Model: PersistentModel>(
    _ type: Model.Type,
    entity: String,
    extending parent: ModelMapping,
    discriminator value: SQLValue,
    properties: [ModelProperty<Model>] = []
  ) {
    guard let discriminator = parent.discriminator else {
      preconditionFailure("\(parent.entityName) has no discriminator, and cannot be extended")
    }
    entityName = entity
    table = parent.table
    ancestors = [parent.entityName] + parent.ancestors
    self.discriminator = Discriminator(column: discriminator.column, value: value)
    self.type = type
    attributeList = parent.attributeList + properties.compactMap(\.attribute)
    relationshipList = parent.relationshipList + properties.compactMap(\.relationship)
    attributes = parent.attributes.adding(properties)
  }
}

/// Attributes by the key paths of their properties.
struct KeyPathTable: @unchecked Sendable {
  // Sendable: the table never changes, and each key path in it came in as a `Sendable` one.
  private var attributes: [AnyKeyPath: MappedAttribute] = [:]

  func adding<Model: PersistentModel>(_ properties: [ModelProperty<Model>]) -> KeyPathTable {
    var table = self
    for property in properties { table.attributes[property.keyPath] = property.attribute }
    return table
  }

  subscript(_ keyPath: AnyKeyPath) -> MappedAttribute? { attributes[keyPath] }
}
