/// Names as they are written in SQL.
@usableFromInline
package enum SQLName {
  /// The name in double quotes, so that spaces, quotes, keywords and any script are allowed in it.
  @usableFromInline
  package static func quoted(_ name: String) -> String {
    let hasQuotes = name.utf8.contains(UInt8(ascii: "\""))
    return "\"\(hasQuotes ? name.replacing("\"", with: "\"\"") : name)\""
  }

  /// The names, quoted and separated by commas.
  @inlinable
  package static func list(_ names: some Sequence<String>) -> String {
    names.map(quoted).joined(separator: ", ")
  }

  /// Whether SQLite considers two names equal: it ignores the case of ASCII letters only.
  package static func equal(_ left: String, _ right: String) -> Bool {
    left.utf8.count == right.utf8.count
      && zip(left.utf8, right.utf8).allSatisfy { folded($0) == folded($1) }
  }

  /// The name with ASCII letters in lower case: equal for names that SQLite considers equal.
  package static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map { folded($0) }, as: UTF8.self)
  }

  private static func folded(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }
}
