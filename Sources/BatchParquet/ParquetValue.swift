/// A value of a row.
public enum ParquetValue: Hashable, Sendable {
  /// No value, in a column of any type.
  case null
  /// A value of ``ParquetType/boolean``.
  case boolean(Bool)
  /// A value of ``ParquetType/int64``; the days of a date, the microseconds of a timestamp, or the unscaled number of a
  /// decimal of at most 18 digits.
  case int64(Int64)
  /// A value of ``ParquetType/double``.
  case double(Double)
  /// A value of ``ParquetType/text`` or ``ParquetType/json``.
  case text(String)
  /// A value of ``ParquetType/bytes``, the 16 bytes of a UUID, or the unscaled number of a decimal of more than 18 digits,
  /// with the highest byte first.
  case bytes([UInt8])
}

extension ParquetType {
  /// Whether a column of the type can hold a value.
  func holds(_ value: ParquetValue) -> Bool {
    switch (self, value) {
    case (_, .null), (.boolean, .boolean), (.int64, .int64), (.timestamp, .int64),
      (.double, .double):
      true
    case (.text, .text(let text)), (.json, .text(let text)): text.utf8.count < Self.byteLimit
    case (.bytes, .bytes(let bytes)): bytes.count < Self.byteLimit
    case (.uuid, .bytes(let bytes)): bytes.count == 16
    case (.date, .int64(let days)): Int32(exactly: days) != nil
    case (.decimal(let precision, _), .int64(let number)):
      precision <= 18
        && number.magnitude < (0..<precision).reduce(UInt64(1)) { power, _ in power * 10 }
    case (.decimal, .bytes(let bytes)): fixedCount.map { 1...$0 ~= bytes.count } ?? false
    default: false
    }
  }

  private static let byteLimit = 1 << 30
}
