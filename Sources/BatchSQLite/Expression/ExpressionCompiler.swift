import BatchRuns
package import BatchIdentifiers

/// Checks that an expression is a single expression over an entity's row and the job's parameters,
/// and that it only reads.
///
/// Three checks protect the database. ``ExpressionScanner`` keeps the text inside its parentheses.
/// SQLite compiles it under an authorizer that only allows reading and calling functions. The
/// compiled statement must have exactly the columns put around the expression. Compiling runs
/// nothing.
package struct ExpressionCompiler {
  let connection: Connection
  let entity: Entity
  private let parameters: Set<String>

  /// Makes a compiler of expressions over an entity's rows, which may use `parameters` as `:name`.
  package init(connection: Connection, entity: Entity, parameters: some Sequence<String>) {
    self.connection = connection
    self.entity = entity
    self.parameters = Set(parameters)
  }

  /// Checks one expression.
  ///
  /// - Returns: The names of the parameters it uses.
  /// - Throws: `BatchError` of code `invalidSQL` with the location of the expression.
  @discardableResult
  package func check(_ expression: SQLExpression) throws(BatchError) -> Set<String> {
    let scanner = try expression.scanned(knowing: parameters)
    // No text can end the select list early and still have this column after it.
    let guardName = "guard-\(UInt64.random(in: .min ... .max))"
    // Also compiled as a condition, where SQLite accepts no aggregate and no window function.
    let sql = """
      SELECT \(expression.sql), 1 AS \(SQLName.quoted(guardName)) \
      FROM \(entity.rowSource) WHERE \(expression.sql)
      """
    do {
      try connection.withReadOnlyAuthorizer { () throws(BatchError) in
        let statement = try connection.prepare(sql)
        guard statement.columnCount == 2, statement.columnName(at: 1) == guardName,
          statement.isReadOnly
        else { throw expression.refusal("this is not one expression") }
      }
    } catch {
      guard let sqlite = error.sqlite else { throw error }
      let advice = error.advice ?? remedy(for: sqlite.message, in: expression.text)
      throw expression.refusal(error.message, advice)
    }
    return scanner.parameters
  }

  private func remedy(for message: String, in text: String) -> Remedy? {
    if let word = message.wholeMatch(of: /near "(\w+)": syntax error/)?.1 {
      switch word.uppercased() {
      case "LIMIT": return "give the number as \(.limit)"
      case "ORDER": return "give the columns as \(.order)"
      case "WHERE": return "leave the word out: this is the condition alone"
      default:
        guard entity.attributes.contains(where: { SQLName.equal($0.name, String(word)) }) else {
          return nil
        }
        return Remedy(stringLiteral: "\(word) is a keyword: write \"\(word)\" in double quotes")
      }
    }
    if let name = message.wholeMatch(of: /no such function: (.+)/)?.1 {
      return remedy(forFunction: String(name))
    }
    let prefix = "no such column: "
    guard message.hasPrefix(prefix) else { return nil }
    let name = String(message.dropFirst(prefix.count))
    let names = entity.attributes.map(\.name)
    let unknown = remedyForUnknownName(name, among: names, kind: "attributes")
    // SQLite treats text in double quotes, or without quotes, as a name.
    let isQuoted = text.contains("\"\(name)\"")
    if isQuoted || nearestName(to: name, among: names) == nil, !name.contains(".") {
      return Remedy(
        stringLiteral: "if it is a text, write '\(name)' in single quotes; \(unknown)"
      )
    }
    return Remedy(stringLiteral: unknown)
  }

  /// SQLite's functions by their names in other databases and languages.
  private static let functions = [
    "lowercase": "lower", "lcase": "lower", "uppercase": "upper", "ucase": "upper",
    "len": "length", "strlen": "length", "char_length": "length", "nvl": "ifnull",
    "isnull": "ifnull", "if": "iif", "substring_index": "instr", "charindex": "instr",
    "position": "instr", "mid": "substr", "left": "substr", "right": "substr",
    "now": "datetime('now')", "getdate": "datetime('now')", "curdate": "date('now')",
    "concat": "||", "to_char": "strftime", "date_format": "strftime", "string_agg": "group_concat",
  ]

  private func remedy(forFunction name: String) -> Remedy? {
    if let meant = Self.functions[name.lowercased()] {
      return Remedy(stringLiteral: "SQLite has \(meant)")
    }
    let names = try? connection.texts("SELECT DISTINCT name FROM pragma_function_list")
    let own = (names ?? []).filter { !$0.hasPrefix("_batch_") }.sorted()
    return nearestName(to: name, among: own).map {
      Remedy(stringLiteral: "did you mean \($0.quotedForMessage)?")
    } ?? "if an extension of SQLite has it, name that in \(.extensions)"
  }
}
