public import BatchIdentifiers
import CSQLite

extension BatchError.Code {
  /// An extension of SQLite cannot be loaded.
  public static let extensionNotLoaded = Self(rawValue: "extensionNotLoaded")
}

extension Connection {
  /// Loads an extension, whose functions, collations and modules statements and the schema can then
  /// use.
  ///
  /// SQL itself still cannot load any: <https://www.sqlite.org/c3ref/load_extension.html>.
  func load(extensionAt index: Int) throws(BatchError) {
    let name = extensions[index]
    var message: UnsafeMutablePointer<CChar>?
    defer { unsafe sqlite3_free(message) }
    let status = unsafe batch_sqlite3_load_extension(database, name, &message)
    guard status != SQLITE_OK else { return }
    let reason = unsafe message.map { unsafe String(cString: $0) } ?? "for no stated reason"
    throw BatchError(
      .extensionNotLoaded,
      "the extension \(name.quotedForMessage) cannot be loaded (\(reason.onOneLine))",
      remedy: name.contains("/")
        ? "give the path of an extension for this SQLite and processor"
        : "install it where the system looks for libraries, or give its path, which has a slash"
    ).about(.databaseExtension(index))
  }
}
