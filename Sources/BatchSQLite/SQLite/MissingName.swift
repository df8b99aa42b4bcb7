import BatchIdentifiers

/// What SQLite cannot find, according to its message: for example a function that only an
/// application defines, or a table that a trigger still names.
struct MissingName {
  enum Kind: String {
    case function, collation, module, tokenizer, table, column

    /// Whether applications or extensions add such things to SQLite.
    var comesWithPrograms: Bool {
      switch self {
      case .function, .collation, .module, .tokenizer: true
      case .table, .column: false
      }
    }

    fileprivate var verbs: (one: String, many: String) {
      switch self {
      case .function: ("calls", "call")
      case .collation, .module, .tokenizer: ("uses", "use")
      case .table, .column: ("refers to", "refer to")
      }
    }
  }

  let kind: Kind
  /// The name without qualifiers, in lower case.
  let name: String

  /// Parses a message of SQLite; nil if it does not report a missing name.
  init?(_ message: String) {
    let found = Self.messages.first { message.hasPrefix($0.prefix) }
    guard let found else { return nil }
    kind = found.kind
    let text = message.dropFirst(found.prefix.count)
    let unqualified =
      [.table, .column].contains(kind)
      ? text.split(separator: ".").last ?? "" : text.hasSuffix("()") ? text.dropLast(2) : text
    name = SQLName.folded(String(unqualified))
    guard !name.isEmpty else { return nil }
  }

  private static let messages: [(prefix: String, kind: Kind)] = [
    ("no such function: ", .function), ("unknown function: ", .function),
    ("wrong number of arguments to function ", .function),
    ("no such collation sequence: ", .collation), ("no such module: ", .module),
    ("no such tokenizer: ", .tokenizer), ("unknown tokenizer: ", .tokenizer),
    ("no such table: ", .table), ("no such column: ", .column),
  ]

  func isNamed(in words: [String]) -> Bool {
    switch kind {
    case .function:
      // An operator such as REGEXP calls a function, and a column can have the name of a function.
      words.indices.contains { index in
        words[index] == name
          && (words[(index + 1)...].first == "(" || Self.operators.contains(name))
      }
    case .tokenizer: words.contains { $0.contains(name) }
    case .collation, .module, .table, .column: words.contains(name)
    }
  }

  /// Whether a statement itself needs it; only a table has a module or a tokenizer.
  func isAsked(by statement: [String]) -> Bool {
    [.module, .tokenizer].contains(kind) ? false : isNamed(in: statement)
  }

  private static let operators: Set<String> = ["regexp", "match", "glob", "like"]

  /// The clause that names the objects that need it: `which the trigger "t" of "orders" calls`.
  func clause(about askers: [SchemaObject]) -> String {
    let names = askers.map { $0.title(asking: self) }.joined(separator: " and ")
    return "which \(names) \(askers.count == 1 ? kind.verbs.one : kind.verbs.many)"
  }

  func advice(about askers: [SchemaObject]) -> Remedy {
    let removable = askers.filter { [.trigger, .index].contains($0.kind) }
    let names = removable.map { "the \($0.kind) \($0.name.quotedForMessage)" }
      .joined(separator: " and ")
    if !kind.comesWithPrograms {
      return removable.isEmpty ? "mend that definition" : "mend or drop \(names)"
    }
    let otherwise =
      removable.isEmpty
      ? "do this in the program that has it" : "drop \(names) for the time of the run"
    return
      "if an extension has the \(kind.rawValue), name it in \(.extensions); otherwise \(otherwise)"
  }
}
