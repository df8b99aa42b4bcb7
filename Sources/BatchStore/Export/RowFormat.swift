/// How exported rows are written.
public enum RowFormat: String, Sendable, CaseIterable {
  /// A JSON object a line.
  case ndjson
  /// RFC 4180, with a line of names first.
  case csv
}
