import BatchPipeline
import BatchTestSupport

/// `output.schema.json`, and which of its properties were in the outputs that it has checked.
///
/// It knows the keywords that the schema uses, and is stricter than JSON Schema: a key that no schema names is wrong.
struct OutputSchema {
  /// A schema, and its path in the file.
  private typealias Place = (schema: JSONValue, path: String)

  private let root: JSONValue
  /// The paths of the properties that were in an output.
  private(set) var seen: Set<String> = []

  init() throws {
    let text = try Repository.text("Documentation/output.schema.json")
    root = try JSONReader.read(Array(text.utf8), file: "output.schema.json")
  }

  /// Checks an output.
  ///
  /// - Parameters:
  ///   - text: The output of a command.
  ///   - name: The name of its definition.
  /// - Returns: What is wrong, with the path of the value.
  /// - Throws: `BatchError` for a text that is not JSON.
  mutating func check(_ text: String, as name: String) throws -> [String] {
    let value = try JSONReader.read(Array(text.utf8), file: name)
    let found = look(at: value, name, with: place("#/$defs/\(name)"))
    seen.formUnion(found.seen)
    return found.problems
  }

  /// The paths of all properties, and whether only PostgreSQL has one.
  var properties: [String: Bool] {
    var properties: [String: Bool] = [:]
    Self.collect(from: root, at: "#", into: &properties)
    return properties
  }

  private static func collect(
    from value: JSONValue,
    at path: String,
    into properties: inout [String: Bool]
  ) {
    for member in value["properties"]?.members ?? [] {
      let words = member.value["description"]?.string ?? ""
      properties["\(path)/properties/\(member.key)"] = words.hasPrefix("PostgreSQL:")
    }
    for member in value.members ?? [] {
      collect(from: member.value, at: "\(path)/\(member.key)", into: &properties)
    }
    for (index, item) in (value.items ?? []).enumerated() {
      collect(from: item, at: "\(path)/\(index)", into: &properties)
    }
  }

  private func place(_ path: String) -> Place {
    let schema = path.split(separator: "/").dropFirst().reduce(root as JSONValue?) { value, key in
      value?[String(key)]
    }
    guard let schema else { preconditionFailure("the schema has no \(path)") }
    return (schema, path)
  }

  /// The schema, and the one to which it adds something.
  private func all(of place: Place) -> [Place] {
    [place] + (place.schema["$ref"]?.string.map { all(of: self.place($0)) } ?? [])
  }

  /// What is wrong with a value, and the paths of its properties.
  private func look(at value: JSONValue, _ name: String, with place: Place) -> Finding {
    let places = all(of: place)
    if let (alternatives, path) = places.first(having: "anyOf") {
      let found = (alternatives.items ?? []).enumerated().map { index, schema in
        look(at: value, name, with: (schema, "\(path)/\(index)"))
      }
      return found.min { $0.problems.count < $1.problems.count } ?? Finding()
    }
    var finding = Finding()
    let types = (places.first(having: "type")?.schema).map { $0.items ?? [$0] } ?? []
    let names = types.compactMap(\.string)
    if !names.isEmpty, !names.contains(where: value.isOf) {
      finding.problems.append("\(name) is \(value.descriptionForMessage), and no \(names)")
    }
    let choices =
      places.first(having: "enum")?.schema.items
      ?? places.first(having: "const").map { [$0.schema] }
    let words = value.descriptionForMessage
    if let choices, !choices.contains(where: { $0.descriptionForMessage == words }) {
      finding.problems.append("\(name) is \(words)")
    }
    for key in places.flatMap({ $0.schema["required"]?.items ?? [] }).compactMap(\.string)
    where value[key] == nil { finding.problems.append("\(name) has no \(key)") }
    for (index, item) in (value.items ?? []).enumerated() {
      finding += look(at: item, "\(name)[\(index)]", places.first(having: "items"))
    }
    for member in value.members ?? [] {
      let properties = places.compactMap { place in
        place.schema["properties"]?[member.key].map {
          ($0, "\(place.path)/properties/\(member.key)")
        }
      }
      if let path = properties.first?.1 { finding.seen.insert(path) }
      finding += look(
        at: member.value,
        "\(name).\(member.key)",
        properties.first ?? places.first(having: "additionalProperties")
      )
    }
    return finding
  }

  private func look(at value: JSONValue, _ name: String, _ place: Place?) -> Finding {
    guard let place else { return Finding(problems: ["\(name) is not in the schema"]) }
    return look(at: value, name, with: place)
  }

  private struct Finding {
    var problems: [String] = []
    var seen: Set<String> = []

    static func += (finding: inout Finding, other: Finding) {
      finding.problems += other.problems
      finding.seen.formUnion(other.seen)
    }
  }
}

extension [(schema: JSONValue, path: String)] {
  /// The value of a keyword in the first of some schemas that has it, and its path.
  fileprivate func first(having keyword: String) -> (schema: JSONValue, path: String)? {
    for place in self {
      if let value = place.schema[keyword] { return (value, "\(place.path)/\(keyword)") }
    }
    return nil
  }
}

extension JSONValue {
  fileprivate subscript(key: String) -> JSONValue? { members?.first { $0.key == key }?.value }

  fileprivate var items: [JSONValue]? {
    if case .array(let items) = content { items } else { nil }
  }

  fileprivate var string: String? {
    if case .string(let text) = content { text } else { nil }
  }

  /// Whether it is of a type of JSON Schema.
  fileprivate func isOf(_ type: String) -> Bool {
    switch content {
    case .null: type == "null"
    case .boolean: type == "boolean"
    case .integer: type == "integer" || type == "number"
    case .real: type == "number"
    case .string: type == "string"
    case .array: type == "array"
    case .object: type == "object"
    }
  }
}
