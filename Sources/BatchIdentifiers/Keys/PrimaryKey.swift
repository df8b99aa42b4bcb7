/// The key of a row, which identifies it within its entity.
///
/// Keys sort as in SQLite: integers by value, others by their components under the `BINARY`
/// collation.
public enum PrimaryKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The key of a table with a rowid or an `INTEGER PRIMARY KEY`.
  case integer(Int64)
  /// Any other key: TEXT, BLOB, UUID, REAL, or several columns.
  case encoded(EncodedKey)

  /// Makes a key of one text column.
  public static func text(_ text: String) -> PrimaryKey {
    .encoded(EncodedKey([.text(text)]))
  }

  /// Makes a key of one blob column.
  public static func blob(_ bytes: [UInt8]) -> PrimaryKey {
    .encoded(EncodedKey([.blob(bytes)]))
  }

  /// Makes a key from its form in URIs; nil if the text is not that of a key.
  package init?(_ text: String) {
    guard let key = KeyReference.parse(Array(text.utf8).span) else { return nil }
    self = key
  }

  /// The components of the key, one per column.
  public var components: [KeyComponent] {
    switch self {
    case .integer(let value): [.integer(value)]
    case .encoded(let key): key.components
    }
  }

  /// The form in which equal keys are equal values: a single integer component becomes `.integer`.
  var canonical: PrimaryKey {
    if case .encoded(let key) = self, let value = key.loneInteger { return .integer(value) }
    return self
  }

  /// The key as written after the `p` in the URI of an identifier: `28`, `=EU,28`.
  public var description: String {
    switch self {
    case .integer(let value): String(value)
    case .encoded(let key): key.description
    }
  }

  /// The text of a key for people, with NULL instead of the `!` of URIs.
  package static func shown(_ description: String) -> String {
    description.split(separator: ",").map { $0 == "!" ? "NULL" : $0 }.joined(separator: ",")
  }

  /// The text of a key among other values: texts as they are, in quotes, not percent-escaped.
  package static func quoted(_ description: String) -> String {
    guard let key = KeyReference.parse(Array(description.utf8).span) else {
      return shown(description)
    }
    return key.components.map { component in
      if case .text(let text) = component { return text.quotedForMessage }
      return shown(PrimaryKey.encoded(EncodedKey([component])).description)
    }.joined(separator: ", ")
  }

  /// Whether one key comes before another: integers first, then encoded keys.
  public static func < (left: PrimaryKey, right: PrimaryKey) -> Bool {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): left < right
    case (.integer, .encoded): true
    case (.encoded, .integer): false
    case (.encoded(let left), .encoded(let right)): left < right
    }
  }
}

extension PrimaryKey: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral {
  /// Makes an integer key.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// Makes a key of one text column.
  public init(stringLiteral text: String) { self = .text(text) }
}
