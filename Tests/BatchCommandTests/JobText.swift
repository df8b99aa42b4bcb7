import Foundation

/// Job files for tests.
enum JobText {
  /// A job that updates `numbers` unless the rest says otherwise, with more top-level keys.
  static func update(
    _ set: [String: String] = ["n": "n + 1"],
    where condition: String? = nil,
    entity: String = "numbers",
    database: String = "test.db",
    adding more: [String: Any] = [:]
  ) throws -> String {
    try make(["type": "update", "set": set], condition, entity, database, more)
  }

  /// A job that deletes rows.
  static func delete(
    archive: String? = nil,
    where condition: String? = nil,
    entity: String = "numbers",
    database: String = "test.db",
    adding more: [String: Any] = [:]
  ) throws -> String {
    var action: [String: Any] = ["type": "delete"]
    if let archive { action["archive"] = ["entity": archive] }
    return try make(action, condition, entity, database, more)
  }

  /// A job that exports rows.
  static func export(
    to file: String,
    format: String = "ndjson",
    where condition: String? = nil,
    entity: String = "numbers",
    database: String = "test.db",
    adding more: [String: Any] = [:]
  ) throws -> String {
    let action = ["type": "export", "file": file, "format": format]
    return try make(action, condition ?? "1", entity, database, more)
  }

  /// An expression that takes SQLite about a millisecond for each row, and is 0.
  static let slowZero = """
    (WITH RECURSIVE c(i) AS (SELECT id UNION ALL SELECT i + 1 FROM c WHERE i < id + 10000)
    SELECT 0 * count(*) FROM c)
    """

  private static func make(
    _ action: [String: Any],
    _ condition: String?,
    _ entity: String,
    _ database: String,
    _ more: [String: Any]
  ) throws -> String {
    var source: [String: Any] = ["entity": entity]
    if let condition { source["where"] = condition } else { source["everything"] = true }
    let job: [String: Any] = [
      "version": 1, "name": "job", "database": ["path": database], "source": source,
      "action": action,
    ]
    let data = try JSONSerialization.data(
      withJSONObject: job.merging(more) { $1 },
      options: [.prettyPrinted, .sortedKeys]
    )
    return String(decoding: data, as: UTF8.self)
  }
}

/// The objects of a program's JSON output.
enum JSONOutput {
  /// The one object of a text.
  static func object(_ text: String) throws -> [String: Any] {
    let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
    guard let object = object as? [String: Any] else { throw CocoaError(.coderReadCorrupt) }
    return object
  }

  /// A value as text, the same for equal values.
  static func text(_ value: Any?) throws -> String {
    let options: JSONSerialization.WritingOptions = [.sortedKeys, .fragmentsAllowed]
    let bytes = try JSONSerialization.data(withJSONObject: value ?? NSNull(), options: options)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The objects of a text with one per line.
  static func lines(_ text: String) throws -> [[String: Any]] {
    try text.split(separator: "\n").map { try object(String($0)) }
  }
}
