import BatchRuns
import BatchIdentifiers

/// The model that Core Data keeps in a store: a packed archive in the table `Z_MODELCACHE`.
struct CachedModel {
  struct Property {
    enum Kind {
      case attribute(CoreDataType)
      case relationship(
        destination: String,
        inverse: String?,
        isToMany: Bool,
        deleteRule: CoreDataDeleteRule
      )
    }

    let name: String
    let kind: Kind
    let isOptional: Bool
    let isDerived: Bool
  }

  /// The stored properties of each entity, including inherited ones.
  private(set) var entities: [String: [Property]] = [:]

  /// The maximum size of a model in bytes, packed or not; the model of an app with a thousand
  /// entities has a few hundred thousand bytes.
  private static let byteLimit = 64 << 20

  init(_ packed: [UInt8]) throws(ByteReader.Damage) {
    let bytes =
      packed.starts(with: "bplist00".utf8)
      ? packed : try Inflation.unpack(packed, atMost: Self.byteLimit)
    let model = try ArchivedObject(rootOf: bytes)
    for entity in model["NSEntities"]?.elements ?? [] {
      guard let name = entity["NSEntityName"]?.string else { continue }
      entities[name] = (entity["NSProperties"]?.elements ?? []).compactMap(Property.init)
    }
    guard !entities.isEmpty else { throw .init("it has no entities") }
  }

  static func read(in connection: Connection) throws(BatchError) -> CachedModel? {
    let isThere = try connection.value(
      "SELECT 1 FROM pragma_table_info('Z_MODELCACHE') WHERE name = 'Z_CONTENT'"
    )
    guard isThere != nil,
      case .blob(let bytes) = try connection.value(
        "SELECT Z_CONTENT FROM main.Z_MODELCACHE WHERE length(Z_CONTENT) <= ? LIMIT 1",
        .integer(Int64(byteLimit))
      )
    else { return nil }
    return try? CachedModel(bytes)
  }
}

extension CachedModel.Property {
  /// A stored property; nil if it is transient or fetched.
  fileprivate init?(_ property: ArchivedObject) {
    guard let name = property["NSPropertyName"]?.string,
      property["NSIsTransient"]?.isTrue != true
    else { return nil }
    if let code = property["NSAttributeType"]?.integer {
      kind = .attribute(CoreDataType(code: code))
    } else if let destination = property["_NSDestinationEntityName"]?.string
      ?? property["NSDestinationEntity"]?["NSEntityName"]?.string
    {
      kind = .relationship(
        destination: destination,
        inverse: property["_NSInverseRelationshipName"]?.string
          ?? property["NSInverseRelationship"]?["NSPropertyName"]?.string,
        isToMany: property["NSMaxCount"]?.integer != 1,
        deleteRule: CoreDataDeleteRule(
          rawValue: property["NSDeleteRule"]?.integer ?? 0
        ) ?? .noAction
      )
    } else {
      return nil
    }
    self.name = name
    isOptional = property["NSIsOptional"]?.isTrue == true
    isDerived = property["NSDerivationExpression"] != nil
  }
}

/// What happens to related objects, by Core Data's numbers.
package enum CoreDataDeleteRule: Int64, Sendable {
  case noAction, nullify, cascade, deny
}
