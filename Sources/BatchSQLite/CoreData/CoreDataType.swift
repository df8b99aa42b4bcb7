package enum CoreDataType: Sendable, Hashable {
  case integer
  case decimal
  case real
  case string
  case boolean
  /// Seconds since 2001, as a real.
  case date
  case binary
  /// Sixteen bytes.
  case uuid
  case uri
  /// Bytes made by a transformer.
  case transformable
  /// The key of a related object.
  case key
  case unknown

  init(code: Int64) {
    self =
      switch code {
      case 100, 200, 300: .integer
      case 400: .decimal
      case 500, 600: .real
      case 700: .string
      case 800: .boolean
      case 900: .date
      case 1000: .binary
      case 1100: .uuid
      case 1200: .uri
      case 1800: .transformable
      default: .unknown
      }
  }

  /// The type from a column's declaration, for stores without a model; it does not show whether a
  /// number is a boolean, or bytes are a UUID.
  init(declared type: String) {
    self =
      switch type.uppercased() {
      case "INTEGER": .integer
      case "DECIMAL": .decimal
      case "FLOAT": .real
      case "VARCHAR": .string
      case "TIMESTAMP": .date
      case "BLOB": .binary
      default: .unknown
      }
  }

  /// The declared type of an attribute; values that are read have its affinity.
  var declaration: String {
    switch self {
    case .integer, .key: "INTEGER"
    case .boolean: CoreDataType.booleanDeclaration
    case .decimal: "DECIMAL"
    case .real: "REAL"
    case .string: "TEXT"
    case .date: "DATE TEXT"
    case .uuid: "UUID TEXT"
    case .uri: "URI TEXT"
    case .binary, .transformable: "BLOB"
    case .unknown: ""
    }
  }

  /// The type name that marks boolean attributes.
  package static let booleanDeclaration = "BOOLEAN"

  /// The SQL that reads a column as jobs and contexts see it: a date as ISO 8601 in UTC, to the
  /// millisecond, and a UUID as text.
  ///
  /// A value of another type, or a date outside the years of ISO 8601, is unchanged.
  func read(_ column: String) -> String {
    switch self {
    case .date:
      """
      iif(typeof(\(column)) IN ('real', 'integer'), \
      ifnull(strftime('%Y-%m-%dT%H:%M:%fZ', \(column) + \(Self.epoch), 'unixepoch'), \(column)), \
      \(column))
      """
    case .uuid:
      """
      iif(typeof(\(column)) = 'blob' AND length(\(column)) = 16, \
      substr(hex(\(column)), 1, 8) || '-' || substr(hex(\(column)), 9, 4) || '-' || \
      substr(hex(\(column)), 13, 4) || '-' || substr(hex(\(column)), 17, 4) || '-' || \
      substr(hex(\(column)), 21), \(column))
      """
    default: column
    }
  }

  /// The SQL that converts a value from the form that jobs and contexts see to the stored form.
  func written(_ value: String) -> String {
    switch self {
    case .date:
      """
      (SELECT iif(typeof(v) = 'text', ifnull(strftime('%s', v) - \(Self.epoch) \
      + strftime('%f', v) - strftime('%S', v), v), v) FROM (SELECT \(value) AS v))
      """
    case .uuid: "\(CoreDataFunctions.uuidBytes)(\(value))"
    default: value
    }
  }

  /// 2001-01-01 in seconds since 1970.
  private static let epoch = 978_307_200
}
