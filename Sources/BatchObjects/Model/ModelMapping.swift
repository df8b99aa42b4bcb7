public import BatchRuns
import BatchSQLite

/// How objects of a class are stored: the name of the entity, its table, and a column per property.
///
/// The classes of a hierarchy share a table, and a discriminator column distinguishes their rows. A
/// mapping that extends another one inherits its properties. In Swift, `\SportCar.maker` differs
/// from `\Car.maker`, so register again the properties that are used in predicates over the
/// extending class.
///
///     class var mapping: ModelMapping { carMapping }
///     private let carMapping = ModelMapping(
///       Car.self, entity: "Car", table: "cars", discriminator: ("kind", .text("car")),
///       properties: [.attribute("maker", \.maker)])
///     private let sportCarMapping = ModelMapping(
///       SportCar.self, entity: "SportCar", extending: carMapping, discriminator: .text("sport"),
///       properties: [.inherited("maker", \.maker), .attribute("topSpeed", \.topSpeed)])
public struct ModelMapping: Sendable {
  struct Discriminator: Sendable {
    let column: String
    let value: SQLValue
  }

  /// The name of the entity, which identifiers contain.
  public let entityName: String
  /// The table or view with the rows.
  public let table: String
  /// Nearest first.
  let ancestors: [String]
  let discriminator: Discriminator?
  let type: any PersistentModel.Type
  /// Each attribute once; those of extended mappings come first.
  let attributeList: [MappedAttribute]
  /// The attributes by the key paths of their properties: key paths of computed properties have no
  /// names, but can be compared.
  let attributes: KeyPathTable
  let identifierPaths: IdentifierPaths

  /// Each relationship once; those of extended mappings come first.
  var relationshipList: [MappedRelationship]
  /// Lists of attributes and to-one relationships that are unique together.
  let uniques: [[String]]
  /// Lists of attributes and to-one relationships to index in a table created for the class.
  let indexes: [[String]]

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
    uniques = properties.compactMap(\.unique)
    indexes = properties.compactMap(\.index)
    attributes = KeyPathTable().adding(properties, to: entity)
    identifierPaths = IdentifierPaths(type)
  }

  /// Maps a class to those rows of another mapping's table that have its discriminator.
  ///
  /// - Precondition: The extended mapping has a discriminator.
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
    uniques = parent.uniques + properties.compactMap(\.unique)
    indexes = parent.indexes + properties.compactMap(\.index)
    attributes = parent.attributes.adding(properties, to: entity)
    identifierPaths = IdentifierPaths(type)
  }
}

struct KeyPathTable: @unchecked Sendable {
  // Sendable: the table never changes, and each key path was `Sendable` when it was added.
  private var attributes: [AnyKeyPath: MappedAttribute] = [:]
  private var relationships: [AnyKeyPath: MappedRelationship] = [:]

  /// Adds properties; inherited ones must already be present under other key paths.
  func adding<Model: PersistentModel>(
    _ properties: [ModelProperty<Model>],
    to entity: String
  ) -> KeyPathTable {
    var table = self
    for property in properties where property.unique == nil && property.index == nil {
      let attribute =
        property.attribute ?? attributes.values.first { $0.name == property.name }
      let relationship =
        property.relationship ?? relationships.values.first { $0.name == property.name }
      if property.attribute != nil || property.relationship == nil, let attribute {
        table.attributes[property.keyPath] = attribute
      } else if let relationship {
        table.relationships[property.keyPath] = relationship
      } else {
        preconditionFailure("\(entity) inherits no property \(property.name)")
      }
    }
    return table
  }

  subscript(_ keyPath: AnyKeyPath) -> MappedAttribute? { attributes[keyPath] }

  func relationship(_ keyPath: AnyKeyPath) -> MappedRelationship? { relationships[keyPath] }
}

struct IdentifierPaths: @unchecked Sendable {
  // Sendable: the key paths never change, and capture nothing.
  private let paths: [AnyKeyPath]

  init<Model: PersistentModel>(_ type: Model.Type) {
    // As written in code that knows the class, and in generic code over a superclass.
    paths = [\Model.persistentModelID, \ManagedObject.persistentModelID]
  }

  func contains(_ path: AnyKeyPath) -> Bool { paths.contains(path) }
}
