import BatchIdentifiers

/// JSON in canonical form: sorted keys, no white space, escapes only where required.
enum CanonicalJSON {
  case null
  case boolean(Bool)
  case integer(Int64)
  case real(Double)
  case string(String)
  case array([CanonicalJSON])
  case object([String: CanonicalJSON])

  var text: String {
    switch self {
    case .null: "null"
    case .boolean(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .real(let value): "\(value)"
    case .string(let value): Self.quoted(value)
    case .array(let items): "[\(items.map(\.text).joined(separator: ","))]"
    case .object(let members): Self.text(of: members)
    }
  }

  private static func text(of members: [String: CanonicalJSON]) -> String {
    let pairs = members.sorted { $0.key < $1.key }.map { key, value in
      "\(quoted(key)):\(value.text)"
    }
    return "{\(pairs.joined(separator: ","))}"
  }

  init(_ value: JSONValue) {
    self =
      switch value.content {
      case .null: .null
      case .boolean(let value): .boolean(value)
      case .integer(let value): .integer(value)
      case .real(let value): .real(value)
      case .string(let value): .string(value)
      case .array(let items): .array(items.map(Self.init))
      case .object(let members):
        .object(
          Dictionary(uniqueKeysWithValues: members.map { ($0.key, Self($0.value)) })
        )
      }
  }

  init(_ text: String?) {
    self = text.map(Self.string) ?? .null
  }

  init(_ texts: [String]?) {
    self = texts.map { .array($0.map(Self.string)) } ?? .null
  }

  private static func quoted(_ text: String) -> String {
    var json: [UInt8] = []
    JSONString.append(text, to: &json)
    return String(decoding: json, as: UTF8.self)
  }
}
