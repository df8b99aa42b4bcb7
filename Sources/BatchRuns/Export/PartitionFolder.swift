package import BatchIdentifiers

/// The folder for rows with the same values in some columns, such as `country=AT/year=2026`.
///
/// Values are escaped as in URIs, so that none leads elsewhere; readers of such folders undo it.
package enum PartitionFolder {
  private static let null = Array("__HIVE_DEFAULT_PARTITION__".utf8)
  /// How long a name may be on the usual file systems.
  private static let byteLimit = 255

  /// Appends the folder for a value in a column, or for NULL.
  ///
  /// - Throws: An error that concerns the row, if the name would be too long.
  package static func append(
    _ name: String,
    _ value: [UInt8]?,
    to path: inout [UInt8]
  ) throws(BatchError) {
    if !path.isEmpty { path.append(UInt8(ascii: "/")) }
    let start = path.count
    path += name.utf8
    path.append(UInt8(ascii: "="))
    if var value {
      // Bytes that are not UTF-8 are replaced, as in the file.
      if value.contains(where: { $0 >= 0x80 }) {
        value = Array(String(decoding: value, as: UTF8.self).utf8)
      }
      // What looks like NULL is none.
      if value == null { PercentEncoding.appendEscape(value.removeFirst(), to: &path) }
      PercentEncoding.append(value.span, to: &path, .unreserved)
    } else {
      path += null
    }
    guard path.count - start > byteLimit else { return }
    throw BatchError(
      .invalidValue,
      "the value in \(name) is too long for the name of a folder: \(path.count - start) bytes, and"
        + " \(byteLimit) are the most"
    )
  }

  /// The values that the folders of a file stand for, which are nil for NULL.
  static func values(of file: String) -> [(name: String, value: String?)] {
    file.split(separator: "/").dropLast().map { folder in
      let name = folder.prefix { $0 != "=" }
      let value = Array(folder[name.endIndex...].dropFirst().utf8)
      let decoded = PercentEncoding.decode(value.span) ?? value
      return (String(name), value == null ? nil : String(decoding: decoded, as: UTF8.self))
    }
  }
}
