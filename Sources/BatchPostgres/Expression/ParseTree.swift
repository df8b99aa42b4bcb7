#if PostgreSQL
/// The functions, operators, types and columns in the text form of the server's parse tree of a
/// statement.
///
/// The form is `{NODE :field value :field {NODE …} …}`. Texts in it have a backslash before every
/// character that could pass for structure, so words split at white space and brackets are the
/// server's own.
struct ParseTree: Equatable {
  private(set) var nodes: Set<String> = []
  /// The functions, by their OIDs in `pg_proc`.
  private(set) var functions: Set<Int64> = []
  /// The operators, by their OIDs in `pg_operator`.
  private(set) var operators: Set<Int64> = []
  /// The types, by their OIDs in `pg_type`.
  private(set) var types: Set<Int64> = []
  /// The types whose values are constructed here, not just read from columns.
  private(set) var madeTypes: Set<Int64> = []
  /// The types whose greatest or smallest value is computed.
  private(set) var rankedTypes: Set<Int64> = []
  /// The columns that are read of each table, by its OID in `pg_class` and their numbers; 0 for the
  /// whole row.
  private(set) var reads: [Int64: Set<Int64>] = [:]
  var relations: Set<Int64> { Set(reads.keys) }
  /// The kind of each query, the outermost first: numbers of the server's `CmdType`.
  private(set) var commands: [Int64] = []

  init(_ text: String) {
    var field: Field?
    var relation: Int64 = 0
    // `:opnos (o 97 98)`: a list belongs to the field before it.
    var isInList = false
    for word in Words(text) {
      switch word.first {
      case UInt8(ascii: "{"):
        nodes.insert(String(decoding: word.dropFirst(), as: UTF8.self))
        field = nil
      case UInt8(ascii: ":"): field = Field(String(decoding: word.dropFirst(), as: UTF8.self))
      case UInt8(ascii: "("): isInList = true
      case UInt8(ascii: ")"):
        isInList = false
        field = nil
      default:
        if let number = Int64(String(decoding: word, as: UTF8.self)) {
          if field == .relation { relation = number }
          note(number, field, relation)
        }
        if !isInList { field = nil }
      }
    }
  }

  private mutating func note(_ number: Int64, _ field: Field?, _ relation: Int64) {
    switch field {
    case .function where number != 0: functions.insert(number)
    case .operator where number != 0: operators.insert(number)
    case .type(let use) where number != 0:
      types.insert(number)
      if use != .read { madeTypes.insert(number) }
      if use == .ranked { rankedTypes.insert(number) }
    case .relation where number != 0: reads[number] = reads[number] ?? []
    // A set of numbers that are greater by seven, since the system columns have negative ones.
    case .columns where number >= 7: reads[relation, default: []].insert(number - 7)
    case .command: commands.append(number)
    default: break
    }
  }

  private enum Field: Equatable {
    case function
    case `operator`
    case type(Use)
    case relation
    case columns
    case command

    enum Use {
      case read
      case made
      case ranked
    }

    init?(_ name: String) {
      switch name {
      case "funcid", "opfuncid", "aggfnoid", "winfnoid", "hashfuncid", "negfuncid",
        "startInRangeFunc",
        "endInRangeFunc", "elemfuncid":
        self = .function
      case "opno", "opnos", "eqop", "sortop", "aggsortop": self = .operator
      case "relid": self = .relation
      case "selectedCols": self = .columns
      case "commandType": self = .command
      // `consttype`, `resulttype`, `array_typeid`, `row_typeid`, `funccoltypes`, ….
      case "vartype", "refcontainertype", "refelemtype", "refrestype": self = .type(.read)
      case "minmaxtype": self = .type(.ranked)
      case _ where name.hasSuffix("type") || name.hasSuffix("typeid") || name.hasSuffix("types"):
        self = .type(.made)
      default: return nil
      }
    }
  }

  /// The words of a tree: `{NODE`, `:field`, `(`, `)` and values; `}` ends a word but is not one
  /// itself.
  private struct Words: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var index = 0

    init(_ text: String) {
      bytes = Array(text.utf8)
    }

    mutating func next() -> ArraySlice<UInt8>? {
      while index < bytes.count, Self.separates(bytes[index]) { index += 1 }
      guard index < bytes.count else { return nil }
      let start = index
      if Self.isParenthesis(bytes[index]) {
        index += 1
        return bytes[start..<index]
      }
      if bytes[index] == UInt8(ascii: "{") { index += 1 }
      while index < bytes.count, !Self.separates(bytes[index]), !Self.isParenthesis(bytes[index]),
        bytes[index] != UInt8(ascii: "{")
      {
        // The character after a backslash always belongs to the word.
        index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
      }
      index = Swift.min(index, bytes.count)
      return bytes[start..<index]
    }

    private static func separates(_ byte: UInt8) -> Bool {
      [0x20, 0x09, 0x0a, 0x0d, UInt8(ascii: "}")].contains(byte)
    }

    private static func isParenthesis(_ byte: UInt8) -> Bool {
      byte == UInt8(ascii: "(") || byte == UInt8(ascii: ")")
    }
  }
}
#endif
