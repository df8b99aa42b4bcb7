#if PostgreSQL
extension PostgresColumn {
  /// The form in which a value is exchanged with the code that computes with it.
  package enum Form: Sendable, Hashable {
    case boolean
    /// `smallint`, `integer`, `bigint`, `oid`.
    case integer
    /// `real`, which has fewer significant digits.
    case singleReal
    case real
    case blob
    case number
    /// The text form of any other type: texts, times, JSON, arrays, ranges, enumerations,
    /// composites.
    case text

    var isReal: Bool { self == .real || self == .singleReal }
  }

  package var form: Form {
    switch baseType {
    case 16: .boolean
    case 20, 21, 23, 26: .integer
    case 700: .singleReal
    case 701: .real
    case 17: .blob
    case 1700: .number
    default: .text
    }
  }

  /// The SQL that selects a value in the binary form that ``form`` describes; the cast is needed
  /// even if the column has this type, because its type may change during a run.
  func selection(of value: String) -> String {
    if form == .text, hasOutputOfItsOwn { return Self.output(of: value) }
    let type =
      switch form {
      case .boolean: "bool"
      case .integer: "int8"
      case .singleReal: "float4"
      case .real: "float8"
      case .blob: "bytea"
      // A cast to text would remove its trailing spaces.
      case .text where baseType == 1042: "bpchar"
      case .number, .text: "text"
      }
    return "\(value)::pg_catalog.\(type)"
  }

  /// Whether a user may have declared a cast of the type to text, which then need not give its text form.
  var hasOutputOfItsOwn: Bool { baseKind != "b" || baseType >= 16_384 }

  /// The text form of a value of any type, by the type's own function; NULL for NULL.
  static func output(of value: String) -> String {
    "CASE WHEN (\(value)) IS DISTINCT FROM NULL THEN pg_catalog.concat(\(value)) END"
  }

  /// The SQL that selects a value for a CSV copy, which the server writes in its text form.
  ///
  /// For most types, the text form equals a cast to text, which costs more. Nor is a cast needed in
  /// case the column's type changes: a text form has no layout that could be misread.
  func field(of name: String) -> String {
    switch (form, baseType) {
    case (.integer, _), (.singleReal, _), (.real, _), (.number, _): return name
    case (.text, 1082), (.text, 1083), (.text, 1114), (.text, 1184), (.text, 1266), (.text, 1186):
      return name  // Dates, times and intervals.
    case (.text, 114), (.text, 3802), (.text, 2950): return name  // JSON and UUIDs.
    case (.text, 1042): return "\(name)::pg_catalog.bpchar"
    case (.text, _) where hasOutputOfItsOwn: return name
    // Unlike the cast, a type's own text form is `t` for a boolean, and lacks the mask of an
    // address.
    default: return "\(name)::pg_catalog.text"
    }
  }

  /// Whether the text form depends on the session's settings, as that of a date, an array of dates,
  /// or a type unknown here.
  var textDependsOnSettings: Bool {
    form == .text && baseKind != "e" && !Self.fixedTexts.contains(baseType)
  }

  /// `char`, `name`, `text`, `json`, `cidr`, `macaddr`, `macaddr8`, `inet`, `bpchar`, `varchar`,
  /// `time`, `timetz`, `bit`, `varbit`, `uuid`, `tsvector`, `jsonb`; arrays of `bool`, integers,
  /// `text`, `varchar` and `numeric`.
  private static let fixedTexts: Set<UInt32> = [
    18, 19, 25, 114, 650, 829, 774, 869, 1042, 1043, 1083, 1266, 1560, 1562, 2950, 3614, 3802, 1000,
    1005, 1007, 1016, 1009, 1015, 1231,
  ]

  /// The type for comparing values with existing ones, and for casting texts; a text too long for
  /// the column must be refused, not truncated by a cast.
  var comparedType: String {
    switch baseType {
    case 1043: "pg_catalog.varchar"
    case 1042: "pg_catalog.bpchar"
    case 1560: "pg_catalog.bit"
    case 1562: "pg_catalog.varbit"
    default: type
    }
  }
}
#endif
