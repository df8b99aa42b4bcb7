import BatchJobs
import BatchSQLite

struct GeneratedClass {
  struct Property {
    let name: String
    /// The column in the table of the class; nil if there is none.
    var column: String?
    /// The type as declared: `String?`, `[Order]`.
    let type: String
    /// The parts of the entry in the mapping; the first is the kind, such as `.toOne`.
    let entry: [String]
    let isReadOnly: Bool
    var comment: String?
  }

  struct Enumeration {
    let name: String
    let cases: [(name: String, value: String)]
  }

  let name: String
  let table: GeneratedTable
  var enumerations: [Enumeration] = []
  var properties: [Property] = []
  /// The columns without a property, with reasons.
  var leftOut: [String] = []
  /// The entries for uniqueness and indexes in the mapping.
  var constraints: [[String]] = []
  /// Facts about the table that the mapping does not express.
  var remarks: [String] = []
  var names = UniqueNames()

  init(_ name: String, _ table: GeneratedTable) {
    self.name = name
    self.table = table
  }

  mutating func add(_ attribute: Attribute, types: Set<String>) {
    guard let type = table.type(of: attribute) else {
      leftOut.append("\(attribute.column): no type is declared, and no value shows one")
      return
    }
    let name = names.take(SwiftName.property(table.plain(attribute.column)))
    let isOptional = !table.isRequired(attribute)
    var swift = type.swift ?? ""
    var codec = type.codec
    if case .enumeration(let values) = type {
      let enumeration = enumeration(attribute, values, types)
      enumerations.append(enumeration)
      swift = enumeration.name
      codec =
        ".raw(placeholder: \(enumeration.name).\(SwiftName.quoted(enumeration.cases[0].name)))"
    }
    var entry = [".attribute", Self.literal(name), "\\.\(SwiftName.quoted(name))"]
    if name != attribute.column { entry.append("column: \(Self.literal(attribute.column))") }
    if let codec { entry.append("as: \(codec)") }
    properties.append(
      Property(
        name: name,
        column: attribute.column,
        type: swift + (isOptional ? "?" : ""),
        entry: entry,
        isReadOnly: attribute.isGenerated,
        comment: comment(on: attribute)
      )
    )
  }

  private func comment(on attribute: Attribute) -> String? {
    if attribute.isGenerated { return "Computed by SQLite." }
    guard table.isKey(attribute.column) else { return nil }
    if table.entity.key?.origin == .rowID {
      return "The key, assigned when a new object is saved, unless set before."
    }
    let part = table.entity.key?.columns.count == 1 ? "The key" : "Part of the key"
    return "\(part), to be set before a new object is saved."
  }

  private func enumeration(
    _ attribute: Attribute,
    _ values: [String],
    _ types: Set<String>
  ) -> Enumeration {
    var name = SwiftName.type(table.plain(attribute.column))
    if types.contains(name) || enumerations.contains(where: { $0.name == name }) { name += "Value" }
    var names = UniqueNames()
    var known: Set<String> = []
    let cases = values.filter { known.insert($0).inserted }.map { value in
      let isEmpty = value.allSatisfy(\.isWhitespace)
      return (name: names.take(isEmpty ? "empty" : SwiftName.property(value)), value: value)
    }
    return Enumeration(name: name, cases: cases)
  }

  // MARK: Text

  var text: String {
    var lines = ["/// A row of table `\(table.entity.table)`."]
    let notes = remarks + leftOut.map { "Left out: \($0)." }
    if !notes.isEmpty { lines.append("///") }
    lines += notes.map { "/// - \(Self.inOneLine($0))" }
    lines.append("final class \(name): ManagedObject, PersistentModel {")
    for enumeration in enumerations {
      lines.append("  enum \(enumeration.name): String, CaseIterable, Codable, Sendable {")
      lines += enumeration.cases.map { entry in
        let value = entry.name == entry.value ? "" : " = \(Self.literal(entry.value))"
        return "    case \(SwiftName.quoted(entry.name))\(value)"
      }
      lines += ["  }", ""]
    }
    lines += [
      "  static let mapping = ModelMapping(", "    \(name).self,",
      "    entity: \(Self.literal(name)),", "    table: \(Self.literal(table.entity.table)),",
    ]
    let entries = properties.map(\.entry) + constraints
    if entries.isEmpty {
      lines.append("    properties: []")
    } else {
      lines.append("    properties: [")
      for entry in entries { lines += Self.entry(entry) }
      // A single entry is not followed by a comma.
      if entries.count == 1 { lines[lines.count - 1].removeLast() }
      lines.append("    ]")
    }
    lines.append("  )")
    for property in properties {
      lines.append("")
      if let comment = property.comment { lines.append("  /// \(comment)") }
      let name = SwiftName.quoted(property.name)
      if property.isReadOnly {
        lines.append("  var \(name): \(property.type) { self[\\.\(name)] }")
      } else {
        lines += [
          "  var \(name): \(property.type) {", "    get { self[\\.\(name)] }",
          "    set { self[\\.\(name)] = newValue }", "  }",
        ]
      }
    }
    return (lines + ["}"]).joined(separator: "\n")
  }

  /// Formats an entry of the mapping, on one line if it fits.
  private static func entry(_ parts: [String]) -> [String] {
    let line = "      \(parts[0])(\(parts.dropFirst().joined(separator: ", "))),"
    if line.count <= 100 { return [line] }
    let arguments = parts.dropFirst().enumerated().map { index, part in
      "        \(part)\(index == parts.count - 2 ? "" : ",")"
    }
    return ["      \(parts[0])("] + arguments + ["      ),"]
  }

  static func literal(_ text: String) -> String {
    var literal = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": literal += "\\\(scalar)"
      case "\n": literal += "\\n"
      case "\r": literal += "\\r"
      case "\t": literal += "\\t"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F:
        literal += "\\u{\(String(scalar.value, radix: 16))}"
      default: literal.unicodeScalars.append(scalar)
      }
    }
    return literal + "\""
  }

  /// Makes text safe for a comment, which a line break would end.
  static func inOneLine(_ text: String) -> String {
    String(text.map { $0.isNewline ? " " : $0 })
  }
}
