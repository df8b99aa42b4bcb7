#if PostgreSQL
import BatchIdentifiers

/// Names as they are written in SQL.
package enum PostgresName {
  /// The name in double quotes, so that spaces, quotes, keywords and any script work in it.
  package static func quoted(_ name: String) -> String {
    "\"\(name.replacing("\"", with: "\"\""))\""
  }

  /// The names, quoted and separated by commas.
  package static func list(_ names: some Sequence<String>) -> String {
    names.map(quoted).joined(separator: ", ")
  }

  /// A name with that of what it is in: a table with its schema, a column with its table.
  package static func qualified(_ whole: String, _ name: String) -> String {
    "\(quoted(whole)).\(quoted(name))"
  }
}

/// The name of a table as somebody wrote it: `orders`, `sales.orders`, `sales."Order Lines"`.
///
/// A part in double quotes is meant to the letter. Others are too, if there is such a name; if there is none,
/// the server's rule holds, which is to take them in lower case.
struct WrittenName {
  /// A part, and what it may stand for beside its own letters.
  struct Part: Equatable {
    let exact: String
    let folded: String
  }

  let schema: Part?
  let table: Part

  /// Reads a name.
  ///
  /// - Throws: `BatchError` of code `unknownEntity` if it has an open quote, an empty part or too many.
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

  /// Takes a part off the front: what is in quotes, or what comes before the next period.
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

  /// A part as it is written to be meant to the letter.
  static func text(_ part: String) -> String {
    part.contains(".") || part.contains("\"") ? PostgresName.quoted(part) : part
  }

  private static func refusal(_ text: String) -> BatchError {
    BatchError(
      .unknownEntity,
      "\(text.quotedForMessage) is no name of a table",
      remedy: "write table or schema.table, and in double quotes what has periods in it"
    ).about(.entity(text))
  }
}
#endif
