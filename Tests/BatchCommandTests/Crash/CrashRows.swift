#if os(Linux)
import BatchTestSupport
import Foundation

/// The expected rows after a run: every row is checked, and none of our own records.
enum CrashRows {
  /// How many rows a scenario has: 50 chunks of five.
  static let count = 250

  /// Each row of `numbers` has been incremented this often, and nothing else changed.
  static func counted(
    _ runs: Int,
    to most: Int? = nil,
    of rows: Int = count,
    in path: String
  ) throws -> String? {
    let right = """
      SELECT count(*) FROM numbers WHERE n BETWEEN \(runs) AND \(most ?? runs)
      AND label = 'label ' || id AND id BETWEEN 1 AND \(rows)
      """
    if try number(path, right) == rows, try number(path, "SELECT count(*) FROM numbers") == rows {
      return try damage(path)
    }
    let found = "SELECT count(*) || ' rows have ' || n FROM numbers GROUP BY n ORDER BY n"
    return try TestDatabase.texts(path, found).joined(separator: ", ")
  }

  /// Each row was moved from `numbers` to `archive`.
  static func archived(in path: String) throws -> String? {
    let right = """
      SELECT count(DISTINCT id) FROM archive WHERE n = 0 AND label = 'label ' || id
      AND id BETWEEN 1 AND \(count)
      """
    let left = try number(path, "SELECT count(*) FROM numbers")
    let archived = try number(path, "SELECT count(*) FROM archive")
    if try number(path, right) == count, archived == count, left == 0 { return try damage(path) }
    return "\(left) rows are left, \(archived) in the archive"
  }

  /// The file has a line per row.
  static func exported(_ name: String, in directory: TemporaryDirectory) throws -> String? {
    guard FileManager.default.fileExists(atPath: directory.file(name)) else {
      return "there is no output"
    }
    let lines = (1...count).map { #"{"id":\#($0),"n":0,"label":"label \#($0)"}"# + "\n" }
    let expected = lines.joined()
    let output = try directory.read(name)
    if output != Array(expected.utf8) {
      return "the output has \(output.count { $0 == 0x0a }) lines, \(output.count) bytes"
    }
    let partial = try directory.names().filter { $0.hasSuffix(".partial") }
    return partial.isEmpty ? nil : "an unfinished output is left"
  }

  private static func number(_ path: String, _ sql: String) throws -> Int {
    try TestDatabase.texts(path, sql).first.flatMap { Int($0) } ?? -1
  }

  private static func damage(_ path: String) throws -> String? {
    let found = try TestDatabase.integrity(path)
    return found == ["ok"] ? nil : "integrity_check: \(found.joined(separator: ", "))"
  }
}
#endif
