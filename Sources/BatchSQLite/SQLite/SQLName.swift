@usableFromInline
package enum SQLName {
  /// The name in backticks, which allow spaces, quotes, keywords and any script.
  ///
  /// SQLite reads an unknown name in double quotes as a string. If a column were dropped during a
  /// run, its name would become the value of every row. A name in backticks is always a name. See
  /// <https://www.sqlite.org/quirks.html#dblquote>.
  @usableFromInline
  package static func quoted(_ name: String) -> String { quoted(name, by: UInt8(ascii: "`")) }

  /// The name in double quotes, as in standard SQL; for definitions that people read, where a name
  /// cannot be taken for a string.
  package static func standard(_ name: String) -> String { quoted(name, by: UInt8(ascii: "\"")) }

  private static func quoted(_ name: String, by quote: UInt8) -> String {
    let mark = String(Unicode.Scalar(quote))
    let inside = name.utf8.contains(quote) ? name.replacing(mark, with: mark + mark) : name
    return mark + inside + mark
  }

  @inlinable
  package static func list(_ names: some Sequence<String>) -> String {
    names.map(quoted).joined(separator: ", ")
  }

  package static func standardList(_ names: some Sequence<String>) -> String {
    names.map(standard).joined(separator: ", ")
  }

  /// Whether SQLite considers two names equal; it ignores the case of ASCII letters only.
  package static func equal(_ left: String, _ right: String) -> Bool {
    left.utf8.count == right.utf8.count
      && zip(left.utf8, right.utf8).allSatisfy { folded($0) == folded($1) }
  }

  /// The name with ASCII letters in lower case, for comparing names as SQLite does.
  package static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map { folded($0) }, as: UTF8.self)
  }

  private static func folded(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }
}
