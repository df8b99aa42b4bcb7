package import BatchRuns
package import BatchIdentifiers

extension Store {
  /// The values that a table's CHECK constraints list for columns, as in `CHECK (state IN ('open',
  /// 'paid'))`; by column, in list order.
  package func valueLists(of entity: Entity) async throws(BatchError) -> [String: [SQLValue]] {
    try await connection(label: "batch.schema").perform { connection throws(BatchError) in
      let sql = try connection.value(
        "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE",
        .text(entity.table)
      )
      guard case .text(let sql)? = sql else { return [:] }
      var lists: [String: [SQLValue]] = [:]
      for (name, values) in ValueList.all(in: sql) {
        guard let attribute = entity.attributes.first(where: { SQLName.equal($0.column, name) })
        else { continue }
        lists[attribute.column] = values
      }
      return lists
    }
  }

  package func firstRows(of entity: Entity, count: Int) async throws(BatchError) -> [[SQLValue]] {
    try await connection(label: "batch.sample").perform { connection throws(BatchError) in
      let columns = entity.attributes.map(\.column)
      let statement = try connection.prepare(
        "SELECT \(SQLName.list(columns)) FROM \(SQLName.quoted(entity.table)) LIMIT \(count)"
      )
      var rows: [[SQLValue]] = []
      while try statement.step() {
        rows.append(columns.indices.map { statement.value(at: $0) })
      }
      return rows
    }
  }
}

enum ValueList {
  /// The columns with their lists, in the order of the statement.
  static func all(in sql: String) -> [(column: String, values: [SQLValue])] {
    guard let scanner = try? ExpressionScanner(sql) else { return [] }
    var lists: [(String, [SQLValue])] = []
    var index = scanner.tokens.startIndex
    while index < scanner.tokens.endIndex {
      defer { index += 1 }
      guard scanner.isKeyword(scanner.tokens[index], "CHECK") else { continue }
      var depth = 0
      let condition = scanner.tokens[(index + 1)...].prefix { token in
        if token.kind == .open { depth += 1 }
        if token.kind == .close { depth -= 1 }
        return depth > 0 || token.kind == .close
      }
      if let list = list(condition.filter { $0.kind != .open && $0.kind != .close }, scanner) {
        lists.append(list)
      }
    }
    return lists
  }

  /// `name IN 'a', 'b'`, optionally with `name IS NULL OR` before it or `OR name IS NULL` after it.
  private static func list(
    _ tokens: [ExpressionScanner.Token],
    _ scanner: ExpressionScanner
  ) -> (String, [SQLValue])? {
    var tokens = tokens[...]
    func isKeyword(_ offset: Int, _ keyword: StaticString) -> Bool {
      let index = tokens.startIndex + offset
      return index < tokens.endIndex && scanner.isKeyword(tokens[index], keyword)
    }
    if isKeyword(1, "IS"), isKeyword(2, "NULL"), isKeyword(3, "OR") { tokens = tokens.dropFirst(4) }
    if tokens.count > 4, isKeyword(tokens.count - 4, "OR"), isKeyword(tokens.count - 2, "IS"),
      isKeyword(tokens.count - 1, "NULL")
    {
      tokens = tokens.dropLast(4)
    }
    guard tokens.count >= 3, isKeyword(1, "IN"), let first = tokens.first else { return nil }
    var values: [SQLValue] = []
    for (offset, token) in tokens.dropFirst(2).enumerated() {
      let text = scanner.text(of: [token])
      if offset.isMultiple(of: 2) {
        guard let value = literal(text) else { return nil }
        values.append(value)
      } else if text != "," {
        return nil
      }
    }
    return (name(scanner.text(of: [first])), values)
  }

  private static func literal(_ text: String) -> SQLValue? {
    if let integer = Int64(text) { return .integer(integer) }
    guard text.count >= 2, text.hasPrefix("'"), text.hasSuffix("'") else { return nil }
    return .text(String(text.dropFirst().dropLast()).replacing("''", with: "'"))
  }

  private static func name(_ text: String) -> String {
    guard let quote = text.first, text.count >= 2, "\"`[".contains(quote) else { return text }
    let inner = String(text.dropFirst().dropLast())
    return quote == "[" ? inner : inner.replacing("\(quote)\(quote)", with: String(quote))
  }
}
