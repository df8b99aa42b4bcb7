import BatchIdentifiers
import BatchPlatform

/// A predicate as a text that is the same in every process, to notice that it has changed:
/// operators before their operands, properties by their registered names, values as they were
/// captured.
///
/// The description of a predicate differs from process to process: it has addresses of the code of
/// computed properties, and the elements of a set in any order.
struct PredicateNotation {
  private var parts: [String] = []

  /// The most bytes of a value that are kept as they are.
  private static let shownBytes = 200

  var text: String { parts.joined(separator: " ") }

  mutating func begin<Expression: PredicateExpression>(_ expression: Expression.Type, name: String)
  {
    switch name {
    // They are told by what they stand for.
    case "Value", "Variable", "KeyPath": break
    default: parts.append(name)
    }
  }

  mutating func append(name: String) { parts.append(name) }

  /// Appends a captured value, but not a date, which mostly is the time of the call.
  mutating func append<Value>(_ value: Value) {
    let type = String(reflecting: Value.self)
    if type.split(whereSeparator: { !$0.isLetter }).contains("Date") {
      parts.append("a date")
      return
    }
    var text: String
    if let elements = value as? any Collection,
      value is any SetAlgebra || type.contains("Dictionary<")
    {
      let sorted = elements.map { String(reflecting: $0) }.sorted()
      text = "[\(sorted.joined(separator: ", "))]"
    } else if let regex = value as? PredicateExpressions.PredicateRegex {
      text = regex.stringRepresentation
    } else {
      text = String(reflecting: value)
    }
    if text.utf8.count > Self.shownBytes {
      let hash = String(XXHash64.hash(Array(text.utf8)), radix: 16)
      text = "\(text.prefix(40))… of \(text.utf8.count.grouped) bytes (\(hash))"
    }
    parts.append(text)
  }
}
