/// The list as an array of identifiers, since values in predicates must be codable.
///
/// To save a list, use ``IdentifierFile``, which is smaller and checked.
extension IdentifierList: Codable {
  private enum CodingKeys: String, CodingKey {
    case storeIdentifier
    case entityName
    case identifiers
  }

  /// Decodes a list.
  ///
  /// - Throws: `DecodingError` if an identifier does not belong to the list's store and entity.
  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    let store = try fields.decode(String.self, forKey: .storeIdentifier)
    let entity = try fields.decode(String.self, forKey: .entityName)
    let identifiers = try fields.decode([PersistentIdentifier].self, forKey: .identifiers)
    let space = IdentifierSpace(storeIdentifier: store.isEmpty ? nil : store, entityName: entity)
    let keys = identifiers.compactMap { $0.space == space ? $0.key : nil }
    guard keys.count == identifiers.count else {
      throw DecodingError.dataCorruptedError(
        forKey: .identifiers,
        in: fields,
        debugDescription: "an identifier is not of entity \(entity) in store \(store)"
      )
    }
    let isInteger = keys.allSatisfy { if case .integer = $0 { true } else { false } }
    var builder = IdentifierListBuilder(
      storeIdentifier: store,
      entityName: entity,
      keyKind: isInteger ? .integer : .encoded
    )
    for key in keys { builder.append(key) }
    self = builder.finish()
  }

  /// Encodes the list.
  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: CodingKeys.self)
    try fields.encode(header.storeIdentifier, forKey: .storeIdentifier)
    try fields.encode(header.entityName, forKey: .entityName)
    try fields.encode(Array(self), forKey: .identifiers)
  }
}
