import BatchIdentifiers
package struct JSONValue: Sendable {
  package enum Content: Sendable {
    case null
    case boolean(Bool)
    /// A number written as an integer.
    case integer(Int64)
    case real(Double)
    case string(String)
    case array([JSONValue])
    /// Members in the order of the file, without duplicate keys.
    case object([JSONMember])
  }

  package let content: Content
  package let position: SourcePosition
}

package struct JSONMember: Sendable {
  package let key: String
  package let keyPosition: SourcePosition
  package let value: JSONValue
}

extension JSONValue {
  /// The value as a message names it: `the number 5`, `an object`.
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

  package var members: [JSONMember]? {
    guard case .object(let members) = content else { return nil }
    return members
  }
}
