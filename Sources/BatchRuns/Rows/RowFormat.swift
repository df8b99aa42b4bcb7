/// The format of exported rows.
public enum RowFormat: String, Sendable, CaseIterable {
  /// A JSON object per line.
  case ndjson
  /// RFC 4180, with a header line.
  case csv
}
