import BatchJobs

enum SwiftName {
  /// Makes the name of a type: `OrderDetail` for `order details`.
  static func type(_ name: String) -> String {
    let joined = words(name).map(capitalized).joined()
    let valid = startingWithLetter(joined, or: "Unnamed")
    return reservedTypes.contains(valid) ? "\(valid)Model" : valid
  }

  /// Makes the type for a row of a table, whose name is assumed to be a plural.
  static func typeOfRow(_ table: String) -> String {
    var words = words(table)
    if let last = words.popLast() { words.append(Noun.singular(last)) }
    return type(words.joined(separator: " "))
  }

  /// Makes the name of a property or case, without the backticks of a keyword: `orderDetail`.
  static func property(_ name: String) -> String {
    let words = words(name)
    let joined = (words.first ?? "") + words.dropFirst().map(capitalized).joined()
    let valid = startingWithLetter(joined, or: "unnamed")
    return reservedProperties.contains(valid) ? "\(valid)Value" : valid
  }

  /// Makes the name of a property for several objects of a type: `orderDetails`.
  static func properties(of type: String) -> String {
    var words = words(type)
    if let last = words.popLast() { words.append(Noun.plural(last)) }
    return property(words.joined(separator: " "))
  }

  static func quoted(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }

  /// Makes the name of a relationship from that of its column: `customer` from `customer_id`.
  static func reference(_ column: String) -> String {
    let parts = words(column)
    guard parts.count > 1, let last = parts.last, ["id", "fk", "key", "uuid"].contains(last) else {
      return property(column)
    }
    return property(parts.dropLast().joined(separator: " "))
  }

  /// Splits a name into words in lower case.
  ///
  /// A word ends at any character other than a letter or a digit, and before a capital.
  static func words(_ name: String) -> [String] {
    var words: [String] = []
    var word = ""
    let characters = Array(name)
    for (index, character) in characters.enumerated() {
      let isPart = character.isLetter || character.isWholeNumber && character.isASCII
      guard isPart else {
        words.append(word)
        word = ""
        continue
      }
      if character.isUppercase, index > 0 {
        let (previous, next) = (characters[index - 1], characters.dropFirst(index + 1).first)
        // `CustomerId` and `HTTPStatus` are two words each, and `URL` is one.
        if previous.isLowercase || previous.isWholeNumber
          || previous.isUppercase && next?.isLowercase == true
        {
          words.append(word)
          word = ""
        }
      }
      word += character.lowercased()
    }
    return (words + [word]).filter { !$0.isEmpty }
  }

  private static func capitalized(_ word: String) -> String {
    word.prefix(1).uppercased() + word.dropFirst()
  }

  private static func startingWithLetter(_ name: String, or substitute: String) -> String {
    guard let first = name.first else { return substitute }
    return first.isLetter ? name : "_\(name)"
  }

  /// Types that the generated source uses, or that readers would mistake for Swift's own.
  private static let reservedTypes: Set = [
    "Any", "Array", "Bool", "CaseIterable", "Character", "Codable", "Data", "Date", "Decimal",
    "Dictionary", "Double", "Error", "Float", "Int", "ManagedObject", "ModelMapping", "Never",
    "Optional", "PersistentModel", "Protocol", "Result", "Self", "Sendable", "Set", "String",
    "Task",
    "Type", "URL", "UUID", "Void",
  ]

  /// Names that objects already have, or that cannot be quoted everywhere.
  private static let reservedProperties: Set = [
    "modelContext", "persistentModelID", "isFault", "isInserted", "isUpdated", "isDeleted",
    "hasChanges", "hashValue", "mapping", "changedValues", "committedValues", "self", "init",
    "deinit", "subscript", "rawValue", "allCases", "hash",
  ]

  private static let keywords: Set = [
    "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "do",
    "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard",
    "if",
    "import", "in", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup",
    "private",
    "protocol", "public", "repeat", "rethrows", "return", "static", "struct", "super", "switch",
    "throw", "throws",
    "true", "try", "typealias", "var", "where", "while",
  ]
}

/// Singular and plural forms of English nouns, as far as table names need them.
enum Noun {
  /// Returns a word that is not a plural unchanged.
  static func singular(_ word: String) -> String {
    if let known = irregular.first(where: { $0.plural == word }) { return known.singular }
    if unchanged.contains(word) || irregular.contains(where: { $0.singular == word }) {
      return word
    }
    if word.hasSuffix("ies"), word.count > 4 { return word.dropLast(3) + "y" }
    for ending in ["sses", "shes", "ches", "xes", "zes", "uses"] where word.hasSuffix(ending) {
      return String(word.dropLast(2))
    }
    let stays = ["ss", "us", "is"].contains { word.hasSuffix($0) }
    return word.hasSuffix("s") && !stays && word.count > 2 ? String(word.dropLast()) : word
  }

  static func plural(_ word: String) -> String {
    if let known = irregular.first(where: { $0.singular == word }) { return known.plural }
    if unchanged.contains(word) || singular(word) != word { return word }
    if word.hasSuffix("y"), let before = word.dropLast().last, !"aeiou".contains(before) {
      return word.dropLast() + "ies"
    }
    for ending in ["s", "sh", "ch", "x", "z"] where word.hasSuffix(ending) { return word + "es" }
    return word + "s"
  }

  private static let irregular: [(singular: String, plural: String)] = [
    ("person", "people"), ("child", "children"), ("man", "men"), ("woman", "women"),
    ("analysis", "analyses"), ("movie", "movies"), ("house", "houses"), ("cause", "causes"),
    ("index", "indices"), ("mouse", "mice"), ("foot", "feet"),
    ("use", "uses"), ("size", "sizes"), ("cache", "caches"), ("cookie", "cookies"),
    ("warehouse", "warehouses"), ("course", "courses"), ("license", "licenses"),
    ("purchase", "purchases"), ("release", "releases"), ("response", "responses"),
    ("expense", "expenses"), ("database", "databases"), ("phase", "phases"), ("case", "cases"),
    ("archive", "archives"), ("leaf", "leaves"), ("series", "series"), ("species", "species"),
    ("data", "data"), ("meta", "meta"), ("media", "media"), ("news", "news"),
  ]

  private static let unchanged: Set = [
    "equipment", "fish", "information", "sheep", "staff", "metadata",
  ]
}

/// Assigns each name only once.
struct UniqueNames {
  private var taken: Set<String>

  init(_ taken: Set<String> = []) { self.taken = taken }

  /// Returns the name, with a number appended if it is taken.
  mutating func take(_ name: String) -> String {
    var unique = name
    var number = 2
    while !taken.insert(unique).inserted {
      unique = "\(name)\(number)"
      number += 1
    }
    return unique
  }
}
