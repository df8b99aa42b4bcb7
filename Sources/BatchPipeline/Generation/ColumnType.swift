import BatchJobs
import BatchPlatform
import BatchRuns
import BatchSQLite

enum ColumnType: Equatable {
  case bool, int, double, string, data, uuid, decimal
  case dateTime, date, iso8601, unixSeconds, referenceSeconds
  /// An enumeration of these texts.
  case enumeration([String])

  /// Nil for an enumeration, which has its own name.
  var swift: String? {
    switch self {
    case .bool: "Bool"
    case .int: "Int"
    case .double: "Double"
    case .string: "String"
    case .data: "Data"
    case .uuid: "UUID"
    case .decimal: "Decimal"
    case .dateTime, .date, .iso8601, .unixSeconds, .referenceSeconds: "Date"
    case .enumeration: nil
    }
  }

  /// The codec in the mapping; nil for the default.
  var codec: String? {
    switch self {
    case .dateTime: ".sqlDateTime"
    case .date: ".sqlDate"
    case .iso8601: ".iso8601"
    case .unixSeconds: ".unixSeconds"
    case .referenceSeconds: ".referenceSeconds"
    default: nil
    }
  }

  var isOfFoundation: Bool {
    ["Data", "UUID", "Decimal", "Date"].contains(swift)
  }

  func fits(_ value: SQLValue) -> Bool {
    switch self {
    case .bool: value == .integer(0) || value == .integer(1)
    case .int: if case .integer = value { true } else { false }
    case .double: value.double != nil
    case .string: value.string != nil
    case .data: if case .blob = value { true } else { false }
    case .uuid: value.uuid != nil
    case .decimal: value.decimal != nil
    case .dateTime: value.string.flatMap { SQLDate($0) } != nil
    case .date: value.string.flatMap { $0.utf8.count == 10 ? SQLDate($0) : nil } != nil
    case .iso8601: value.string.flatMap { Date(iso8601: $0) } != nil
    case .unixSeconds, .referenceSeconds: isNumber(value)
    case .enumeration(let cases):
      if case .text(let text) = value { cases.contains(text) } else { false }
    }
  }

  private func isNumber(_ value: SQLValue) -> Bool {
    switch value {
    case .integer, .real: true
    case .null, .text, .invalidText, .blob: false
    }
  }
}

extension ColumnType {
  /// Finds the type of a column; nil if neither the declaration nor the values show it.
  ///
  /// - Parameters:
  ///   - declared: The declared type, which may be empty.
  ///   - listed: The values that a CHECK constraint lists.
  ///   - isCoreData: Whether Core Data created the table.
  ///   - sample: Values of the column, if sampled.
  init?(declared: String, listed: [SQLValue]?, isCoreData: Bool, sample: [SQLValue]) {
    var types = Self.types(declared.uppercased(), isCoreData: isCoreData)
    if let listed, !listed.isEmpty {
      let texts = listed.compactMap { if case .text(let text) = $0 { text } else { nil } }
      if texts.count == listed.count { types.insert(.enumeration(texts), at: 0) }
      if listed.allSatisfy({ $0 == .integer(0) || $0 == .integer(1) }), listed.count == 2 {
        types.insert(.bool, at: 0)
      }
    }
    let values = sample.filter { $0 != .null }
    // A date and time may have the form of ISO 8601, and must then be written in that form too.
    if !values.isEmpty, let index = types.firstIndex(of: .iso8601) {
      types.insert(types.remove(at: index), at: 0)
    }
    let fitting = types.first { type in values.allSatisfy { type.fits($0) } }
    // If a value fits no declared type, its stored form determines the type.
    let stored: [ColumnType] = [.int, .double, .string, .data]
    guard let type = fitting ?? stored.first(where: { type in values.allSatisfy { type.fits($0) } })
    else { return nil }
    if values.isEmpty, types.isEmpty { return nil }
    self = type
  }

  /// The possible types for a declared type, most likely first.
  private static func types(_ declared: String, isCoreData: Bool) -> [ColumnType] {
    func has(_ parts: String...) -> Bool { parts.contains { declared.contains($0) } }
    let name = declared.prefix { $0 != "(" }.filter { $0 != " " }
    if has("BOOL") || name == "BIT" || declared.hasPrefix("TINYINT(1)") { return [.bool, .int] }
    if has("DATETIME", "TIMESTAMP") {
      return isCoreData
        ? [.referenceSeconds] : [.dateTime, .iso8601, .unixSeconds, .string]
    }
    if name == "DATE" { return [.date, .dateTime, .iso8601, .unixSeconds, .string] }
    if has("INT") { return [.int, .double] }
    if name == "UUID" || name == "GUID" || has("UNIQUEIDENTIFIER") { return [.uuid, .string] }
    if has("CHAR", "CLOB", "TEXT", "STRING", "ENUM", "JSON") || name == "TIME" { return [.string] }
    if has("BLOB", "BINARY", "BYTEA", "IMAGE") { return [.data, .uuid] }
    if has("REAL", "FLOA", "DOUB") { return [.double] }
    if has("DEC", "NUMERIC", "MONEY", "NUMBER") { return [.decimal, .double] }
    return []
  }
}
