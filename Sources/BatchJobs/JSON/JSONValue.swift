import BatchIdentifiers
/// A JSON value with its position in its file.
package struct JSONValue: Sendable {
  /// What a value is made of.
  package enum Content: Sendable {
    case null
    case boolean(Bool)
    /// A number without fraction and exponent, exactly.
    case integer(Int64)
    /// A number with a fraction or an exponent.
    case real(Double)
    case string(String)
    case array([JSONValue])
    /// Members in the order of the file, without duplicate keys.
    case object([JSONMember])
  }

  /// The value itself.
  package let content: Content
  /// The position of its first character.
  package let position: SourcePosition
}

/// A key of a JSON object and its value.
package struct JSONMember: Sendable {
  /// The key, unescaped.
  package let key: String
  /// The position of the key's opening quote.
  package let keyPosition: SourcePosition
  /// The value of the key.
  package let value: JSONValue
}

extension JSONValue {
  /// The value as an error message names it: `the number 5`, `an object`.
  package var descriptionForMessage: String {
    switch content {
    case .null: "null"
    case .boolean(let value): "\(value)"
    case .integer(let value): "the number \(value)"
    case .real(let value): "the number \(value)"
    case .string(let value): "the string \(value.quotedForMessage)"
    case .array: "an array"
    case .object: "an object"
    }
  }

  /// The members, if the value is an object.
  package var members: [JSONMember]? {
    guard case .object(let members) = content else { return nil }
    return members
  }
}
