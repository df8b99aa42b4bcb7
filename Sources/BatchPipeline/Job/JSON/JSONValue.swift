import BatchIdentifiers
/// A JSON value that knows where in its file it stands.
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
    /// Members in the order of the file, no key twice.
    case object([JSONMember])
  }

  /// The value itself.
  package let content: Content
  /// Where its first character stands.
  package let position: SourcePosition
}

/// A key of a JSON object and its value.
package struct JSONMember: Sendable {
  /// The key, unescaped.
  package let key: String
  /// Where the opening quote of the key stands.
  package let keyPosition: SourcePosition
  /// What the key stands for.
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
