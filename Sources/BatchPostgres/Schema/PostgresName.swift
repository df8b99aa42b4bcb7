#if PostgreSQL
import BatchIdentifiers

package enum PostgresName {
  /// The name in double quotes, which allow spaces, quotes, keywords and letters of any script.
  package static func quoted(_ name: String) -> String {
    "\"\(name.replacing("\"", with: "\"\""))\""
  }

  package static func list(_ names: some Sequence<String>) -> String {
    names.map(quoted).joined(separator: ", ")
  }

  /// A qualified name: a table with its schema, or a column with its table.
  package static func qualified(_ whole: String, _ name: String) -> String {
    "\(quoted(whole)).\(quoted(name))"
  }
}

/// The name of a table as a user wrote it: `orders`, `sales.orders`, `sales."Order Lines"`.
///
/// A part in double quotes is taken literally. So is any other part if such a name exists; if not,
/// it is folded to lower case, as the server does.
struct WrittenName {
  struct Part: Equatable {
    let exact: String
    let folded: String
  }

  let schema: Part?
  let table: Part

  /// - Throws: `BatchError` of code `unknownEntity` for an open quote, an empty part or too many
  ///   parts.
  init(_ text: String) throws(BatchError) {
    var parts: [Part] = []
    var rest = text[...]
    while true {
      guard let part = Self.takePart(&rest) else { throw Self.refusal(text) }
      parts.append(part)
      if rest.isEmpty { break }
      guard rest.removeFirst() == "." else { throw Self.refusal(text) }
    }
    guard let table = parts.popLast(), parts.count < 2 else { throw Self.refusal(text) }
    self.table = table
    schema = parts.first
  }

  private static func takePart(_ rest: inout Substring) -> Part? {
    guard rest.first == "\"" else {
      let name = String(rest.prefix { $0 != "." })
      rest = rest.dropFirst(name.count)
      return name.isEmpty || name.contains("\"")
        ? nil : Part(exact: name, folded: name.lowercased())
    }
    rest.removeFirst()
    var name = ""
    while let character = rest.popFirst() {
      if character == "\"" {
        guard rest.first == "\"" else {
          return name.isEmpty ? nil : Part(exact: name, folded: name)
        }
        rest.removeFirst()
      }
      name.append(character)
    }
    return nil
  }

  /// Quotes a part of a name if it would otherwise not be read literally.
  static func text(_ part: String) -> String {
    part.contains(".") || part.contains("\"") ? PostgresName.quoted(part) : part
  }

  private static func refusal(_ text: String) -> BatchError {
    BatchError(
      .unknownEntity,
      "\(text.quotedForMessage) is not a table name",
      remedy: "write table or schema.table; put a name that contains a period in double quotes"
    ).about(.entity(text))
  }
}
#endif
