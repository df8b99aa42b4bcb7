import BatchEngine
package import BatchIdentifiers

/// Shows that an expression is one expression over an entity's row and the job's parameters, and
/// that it only reads.
///
/// Three things stand between the text and the database: ``ExpressionScanner``, which keeps it
/// inside its parentheses; SQLite's compiler under an authorizer that allows reading and calling
/// functions, nothing else; and a check that the compiled statement has exactly the columns that
/// were put around the expression. Compiling runs nothing.
package struct ExpressionCompiler {
  let connection: Connection
  let entity: Entity
  private let parameters: Set<String>

  /// A compiler of expressions over the rows of an entity, in which `parameters` may be used as
  /// `:name`.
  package init(connection: Connection, entity: Entity, parameters: some Sequence<String>) {
    self.connection = connection
    self.entity = entity
    self.parameters = Set(parameters)
  }

  /// Checks one expression.
  ///
  /// - Returns: The names of the parameters that it uses.
  /// - Throws: `BatchError` of code `invalidSQL` with the place of the expression.
  @discardableResult
  package func check(_ expression: SQLExpression) throws(BatchError) -> Set<String> {
    let scanner = try expression.scanned(knowing: parameters)
    // Nobody can write text that ends the select list early and still has this column behind it.
    let guardName = "guard-\(UInt64.random(in: .min ... .max))"
    // It stands in the condition too, where SQLite takes no aggregate and no window function.
    let checked = SQLExpression(scanner.textWithoutStringNames).sql
    let sql = """
      SELECT \(checked), 1 AS \(SQLName.quoted(guardName)) \
      FROM \(entity.rowSource) WHERE \(checked)
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
      throw expression.refusal(sqlite.message, remedy(for: sqlite.message, in: expression.text))
    }
    return scanner.parameters
  }

  /// SQLite tells nothing but in words which name it does not know.
  private func remedy(for message: String, in text: String) -> Remedy? {
    if let word = message.wholeMatch(of: /near "(\w+)": syntax error/)?.1 {
      switch word.uppercased() {
      case "LIMIT": return "give the number as \(.limit)"
      case "ORDER": return "give the columns as \(.order)"
      case "WHERE": return "leave the word out: this is the condition alone"
      default: return nil
      }
    }
    let prefix = "no such column: "
    guard message.hasPrefix(prefix) else { return nil }
    let name = String(message.dropFirst(prefix.count))
    let names = entity.attributes.map(\.name)
    let unknown = remedyForUnknownName(name, among: names, kind: "attributes")
    // SQLite takes what is in double quotes, or in none, for a name.
    let isQuoted = text.contains("\"\(name)\"")
    if isQuoted || nearestName(to: name, among: names) == nil, !name.contains(".") {
      return Remedy(
        stringLiteral: "if it is a text, write '\(name)' in single quotes; \(unknown)"
      )
    }
    return Remedy(stringLiteral: unknown)
  }
}
