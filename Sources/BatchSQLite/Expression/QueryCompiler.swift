package import BatchIdentifiers

/// Makes an entity of a job's query, after checking that it is one SELECT that only reads.
///
/// The query's rows act as those of a view in no schema: wherever an entity's rows are read, the
/// query in parentheses replaces a table. The checks are those of an expression; see
/// ``ExpressionCompiler``.
package struct QueryCompiler {
  private let connection: Connection
  private let schema: Schema
  private let parameters: Set<String>

  package init(connection: Connection, schema: Schema, parameters: some Sequence<String>) {
    self.connection = connection
    self.schema = schema
    self.parameters = Set(parameters)
  }

  /// The rows of a query as an entity, still without a key.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` with the location of the query.
  package func entity(of query: SQLExpression) throws(BatchError) -> Entity {
    let scanner = try query.scanned(as: .query, knowing: parameters)
    try refuse(query, unlessItIsOneSelect: scanner)
    if let token = scanner.clock {
      throw query.refusal(
        of: .query,
        "\(token) changes whenever rows are looked up again",
        "give the time as a parameter with the default \"$runStartedAt\", or select by it in source.where"
      )
    }
    let checked = SQLExpression(scanner.textWithoutStringNames)
    let attributes: [Attribute]
    do {
      attributes = try connection.withReadOnlyAuthorizer { () throws(BatchError) in
        try self.attributes(of: query, checked)
      }
    } catch {
      guard let sqlite = error.sqlite else { throw error }
      throw query.refusal(
        of: .query,
        error.message,
        error.advice ?? remedy(for: sqlite.message)
      )
    }
    let calls = try connection.accesses(of: "SELECT * FROM \(checked.sql)").functions
      .intersection(ExpressionCompiler.changingFunctions)
    if let call = calls.min() {
      throw query.refusal(
        of: .query,
        "\(call)() changes from call to call, and rows are looked up again",
        "select by it in source.where, which is evaluated once"
      )
    }
    var entity = Entity(
      name: Entity.queryName,
      table: Entity.queryName,
      kind: .query,
      key: nil,
      attributes: attributes
    )
    entity.standIn = query.sql
    return entity
  }

  /// Refuses what SQLite accepts in parentheses but does not affect which rows exist.
  private func refuse(
    _ query: SQLExpression,
    unlessItIsOneSelect scanner: ExpressionScanner
  ) throws(BatchError) {
    guard let first = scanner.tokens.first,
      ["SELECT", "WITH", "VALUES"].contains(where: { scanner.isKeyword(first, $0) })
    else {
      throw query.refusal(of: .query, "there is no SELECT", "write one SELECT statement")
    }
    for token in scanner.outerTokens {
      if scanner.isKeyword(token, "ORDER") {
        throw query.refusal(
          of: .query,
          "ORDER BY does not affect which rows there are",
          "give the columns as \(.order)"
        )
      }
      if scanner.isKeyword(token, "LIMIT") {
        throw query.refusal(
          of: .query,
          "with LIMIT, a later look-up might find other rows",
          "give the number as \(.limit)"
        )
      }
    }
  }

  /// The columns of the query; must be called under the authorizer.
  private func attributes(
    of query: SQLExpression,
    _ checked: SQLExpression
  ) throws(BatchError) -> [Attribute] {
    // No text can end the parentheses early and still have this column after it.
    let guardName = "guard-\(UInt64.random(in: .min ... .max))"
    let row = SQLName.quoted(Entity.queryName)
    let wrapped = try connection.prepare(
      "SELECT \(row).*, 1 AS \(SQLName.quoted(guardName)) FROM \(checked.sql) AS \(row)"
    )
    let count = wrapped.columnCount - 1
    guard count > 0, wrapped.columnName(at: count) == guardName, wrapped.isReadOnly else {
      throw query.refusal(of: .query, "this is not one SELECT")
    }
    // Inside parentheses, SQLite renames a second column `name` to `name:1`.
    let bare = try connection.prepare(checked.text)
    var names: Set<String> = []
    for column in 0..<bare.columnCount {
      let name = bare.columnName(at: column)
      if names.insert(SQLName.folded(name)).inserted { continue }
      throw query.refusal(
        of: .query,
        "two columns are called \(name.quotedForMessage)",
        "give one another name with AS"
      )
    }
    return (0..<count).map { column in
      let name = wrapped.columnName(at: column)
      return Attribute(
        name: name,
        column: name,
        type: wrapped.columnType(at: column),
        isOptional: true,
        isGenerated: false,
        hasDefault: true
      )
    }
  }

  private func remedy(for message: String) -> Remedy? {
    if message.hasPrefix("no such column: ") {
      return "if it is a text, write it in single quotes"
    }
    guard let name = message.wholeMatch(of: /no such table: (?:main\.)?(.+)/)?.1 else { return nil }
    return Remedy(
      stringLiteral: remedyForUnknownName(
        String(name),
        among: schema.entities.map(\.name),
        kind: "entities"
      )
    )
  }
}

extension ExpressionScanner {
  /// The first token that makes a time depend on the system's time zone.
  var timeZone: String? {
    tokens.lazy.map { text(of: [$0]) }.first { ["'localtime'", "'utc'"].contains($0.lowercased()) }
  }

  /// The first token that reads the time: `CURRENT_TIMESTAMP`, `'now'`, or a date function without
  /// a time.
  var clock: String? {
    var texts = tokens.map { text(of: [$0]) }
    texts.append("")
    let functions: Set = ["date", "time", "datetime", "julianday", "unixepoch", "strftime"]
    let keywords: Set = ["current_timestamp", "current_date", "current_time"]
    let folded = texts.map { $0.lowercased() }
    for (index, word) in folded.enumerated() {
      if keywords.contains(word) || word == "'now'" { return texts[index] }
      guard functions.contains(word), index + 2 < texts.count, texts[index + 1] == "(" else {
        continue
      }
      let end = word == "strftime" ? index + 3 : index + 2
      if end < texts.count, texts[end] == ")" { return "\(word)() without a time" }
    }
    return nil
  }
}

extension Entity {
  package static let queryName = "query"
}
