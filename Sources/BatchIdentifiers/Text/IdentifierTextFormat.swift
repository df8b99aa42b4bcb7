/// The text form of identifiers, one per line.
public enum IdentifierTextFormat: String, CaseIterable, Sendable {
  /// The URI: `x-coredata://STORE/orders/p28`.
  case uri
  /// The key alone: `28`, or for other keys the text after the `p` of the URI: `=EU,28`.
  case key
  /// The JSON form of ``PersistentIdentifier``.
  case json
}
