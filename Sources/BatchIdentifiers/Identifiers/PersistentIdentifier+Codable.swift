extension PersistentIdentifier: Codable {
  private enum OuterKeys: String, CodingKey {
    case implementation
  }

  private enum InnerKeys: String, CodingKey {
    case primaryKey
    case uriRepresentation
    case isTemporary
    case storeIdentifier
    case entityName
  }

  /// Decodes the JSON form of SwiftData's identifiers.
  ///
  /// The URI is authoritative, and the other fields must agree with it. `storeIdentifier` may be
  /// missing; unknown fields are ignored.
  ///
  /// - Throws: `DecodingError` if a field is missing, malformed, or contradicts the URI.
  public init(from decoder: any Decoder) throws {
    let outer = try decoder.container(keyedBy: OuterKeys.self)
    let fields = try outer.nestedContainer(keyedBy: InnerKeys.self, forKey: .implementation)
    let uri = try fields.decode(String.self, forKey: .uriRepresentation)
    guard let identifier = PersistentIdentifier(uriString: uri) else {
      throw DecodingError.dataCorruptedError(
        forKey: .uriRepresentation,
        in: fields,
        debugDescription: "\(uri) is not the URI of an identifier"
      )
    }
    let store = try fields.decodeIfPresent(String.self, forKey: .storeIdentifier)
    let agrees: [(InnerKeys, Bool)] = [
      (.primaryKey, try fields.decode(String.self, forKey: .primaryKey) == identifier.primaryKey),
      (.isTemporary, try fields.decode(Bool.self, forKey: .isTemporary) == identifier.isTemporary),
      (.entityName, try fields.decode(String.self, forKey: .entityName) == identifier.entityName),
      (.storeIdentifier, store == nil || store == identifier.storeIdentifier),
    ]
    if let (key, _) = agrees.first(where: { !$0.1 }) {
      throw DecodingError.dataCorruptedError(
        forKey: key,
        in: fields,
        debugDescription: "it contradicts the URI \(uri)"
      )
    }
    self = identifier
  }

  /// Encodes the JSON form of SwiftData's identifiers.
  public func encode(to encoder: any Encoder) throws {
    var outer = encoder.container(keyedBy: OuterKeys.self)
    var fields = outer.nestedContainer(keyedBy: InnerKeys.self, forKey: .implementation)
    try fields.encode(primaryKey, forKey: .primaryKey)
    try fields.encode(uriString, forKey: .uriRepresentation)
    try fields.encode(isTemporary, forKey: .isTemporary)
    try fields.encodeIfPresent(storeIdentifier, forKey: .storeIdentifier)
    try fields.encode(entityName, forKey: .entityName)
  }
}
