package import BatchIdentifiers

/// The rows that a run exports if it exports only what changed: those between two places in the order of a
/// column, the cursor.
///
/// The run keeps the range, however often it is killed. The next one begins where it ends, so that each row
/// is in one range, whatever its cursor is.
package struct Increment: Codable, Hashable, Sendable {
  /// A place between two rows: before all rows with this cursor or, with a key, just after the row with it.
  package struct Bound: Hashable, Sendable {
    package let cursor: KeyComponent
    /// Empty for a place before all rows with the cursor.
    package let key: [KeyComponent]

    package init(_ cursor: KeyComponent, _ key: [KeyComponent] = []) {
      (self.cursor, self.key) = (cursor, key)
    }

    package var components: [KeyComponent] { [cursor] + key }
  }

  /// The cursor's column.
  package let column: String
  /// Where the range begins; nil for before the first row.
  package let from: Bound?
  /// Where it ends; nil if no row had a cursor, so that the range is empty.
  package let to: Bound?

  package init(_ column: String, from: Bound?, to: Bound?) {
    (self.column, self.from, self.to) = (column, from, to)
  }
}

extension Increment.Bound: Codable {
  /// Decodes the cursor and the key in the form of keys in identifiers: `=2026-11-29 08:30:00`, `41,=EU,28`.
  package init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let key = PrimaryKey(text), let cursor = key.components.first else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "this is no place between rows")
      )
    }
    self.init(cursor, Array(key.components.dropFirst()))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(EncodedKey(components).description)
  }
}

extension Increment.Bound: CustomStringConvertible {
  /// The place for people, such as `2026-11-29 08:30:00`, `41 (key 28)`.
  package var description: String {
    guard !key.isEmpty else { return cursor.shown }
    return "\(cursor.shown) (key \(key.map(\.shown).joined(separator: ", ")))"
  }
}

extension KeyComponent {
  /// The value for people: a text as it is, another one as in the URI of an identifier.
  fileprivate var shown: String {
    switch self {
    case .text(let text): text
    case .real(let value): value.description
    case .null, .integer, .blob, .invalidText:
      PrimaryKey.shown(EncodedKey([self]).description)
    }
  }
}

/// The range of cursors that a run exports, as `status --json` prints it.
public struct ExportedRange: Hashable, Sendable, Encodable {
  /// The cursor's column.
  public let column: String
  /// The cursor at which the range begins; nil for before the first row.
  public let from: String?
  /// The key of the last row before the range, if rows with the cursor `from` are on both sides.
  public let fromKey: [String]?
  /// The cursor at which the range ends; nil if no row had one.
  public let to: String?
  /// The key of the last row of the range; nil if the range ends before all rows with the cursor `to`.
  public let toKey: [String]?
  /// The range in words.
  package let words: String

  private enum CodingKeys: CodingKey { case column, from, fromKey, to, toKey }

  package init(_ increment: Increment) {
    func texts(_ key: [KeyComponent]?) -> [String]? {
      guard let key, !key.isEmpty else { return nil }
      return key.map(\.shown)
    }
    column = increment.column
    from = increment.from.map(\.cursor.shown)
    fromKey = texts(increment.from?.key)
    to = increment.to.map(\.cursor.shown)
    toKey = texts(increment.to?.key)
    words = increment.words
  }
}

extension Increment {
  /// The range in words, such as `updated_at from 2026-11-29 08:30:00 to before 2026-11-29 09:30:00`.
  package var words: String {
    guard let to else { return "no row, since none has a \(column)" }
    let end = to.key.isEmpty ? "before \(to)" : "up to \(to)"
    guard let from else { return "\(column) \(end)" }
    return
      "\(column) \(from.key.isEmpty ? "from" : "after") \(from) \(to.key.isEmpty ? "to " : "")\(end)"
  }
}
