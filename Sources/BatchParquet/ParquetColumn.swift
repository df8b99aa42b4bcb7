/// A column of a file; each can have NULLs.
public struct ParquetColumn: Hashable, Sendable {
  /// The name.
  public let name: String
  /// What its values mean.
  public let type: ParquetType

  /// Makes a column from its parts.
  public init(name: String, type: ParquetType) {
    self.name = name
    self.type = type
  }
}

/// What the values of a column mean, which also decides how they are stored.
public enum ParquetType: Hashable, Sendable {
  /// True or false.
  case boolean
  /// A signed integer of 64 bits.
  case int64
  /// A number of 64 bits in binary floating point.
  case double
  /// Valid UTF-8, which is not checked here: most readers refuse anything else.
  case text
  /// Any bytes.
  case bytes
  /// A text that is JSON, which is not checked here.
  case json
  /// A decimal number of up to 38 digits, `scale` of them after the point: up to 18 digits are appended as unscaled
  /// integers, more as big-endian bytes.
  case decimal(precision: Int, scale: Int)
  /// Days since 1970-01-01, within 32 bits.
  case date
  /// Microseconds since 1970-01-01, in UTC or as clocks showed them somewhere.
  case timestamp(isUTC: Bool)
  /// 16 bytes.
  case uuid
}

extension ParquetType {
  /// How values are kept until they are encoded.
  enum Layout { case booleans, integers, days, doubles, arrays }

  var layout: Layout {
    switch self {
    case .boolean: .booleans
    case .int64, .timestamp: .integers
    case .date: .days
    case .double: .doubles
    case .decimal(let precision, _): precision <= 18 ? .integers : .arrays
    case .text, .bytes, .json, .uuid: .arrays
    }
  }

  /// `Type` of parquet.thrift.
  var physicalType: Int {
    switch layout {
    case .booleans: 0
    case .days: 1
    case .integers: 2
    case .doubles: 5
    case .arrays: fixedCount == nil ? 6 : 7
    }
  }

  /// The number of bytes of every value, for those that would otherwise need a length.
  var fixedCount: Int? {
    switch self {
    case .uuid: 16
    case .decimal(let precision, _) where precision > 18: Self.decimalCounts[precision - 19]
    default: nil
    }
  }

  /// The fewest bytes that hold all signed numbers of 19 to 38 digits.
  private static let decimalCounts = [
    9, 9, 9, 10, 10, 11, 11, 11, 12, 12, 13, 13, 13, 14, 14, 15, 15, 16, 16, 16,
  ]

  /// The field of union `LogicalType` of parquet.thrift, and `ConvertedType` for older readers.
  var annotation: (logical: Int, converted: Int?)? {
    switch self {
    case .text: (1, 0)
    case .decimal: (5, 5)
    case .date: (6, 6)
    case .timestamp: (8, 10)
    case .json: (12, 19)
    case .uuid: (14, nil)
    case .boolean, .int64, .double, .bytes: nil
    }
  }

  /// The encoding that writes differences instead of numbers, or of lengths.
  var deltaEncoding: RowGroupOutput.Encoding? {
    switch layout {
    case .integers, .days: .delta
    case .arrays: fixedCount == nil ? .deltaLengths : nil
    case .booleans, .doubles: nil
    }
  }

  /// Whether bounds of statistics must be UTF-8.
  var isText: Bool { self == .text || self == .json }

  /// Whether byte arrays are numbers in two's complement.
  var isSignedArray: Bool { layout == .arrays && annotation?.converted == 5 }

  /// The bytes of a number in a file, where those of booleans are in statistics only.
  var wordByteCount: Int {
    switch layout {
    case .booleans: 1
    case .days: 4
    default: 8
    }
  }
}
