#if PostgreSQL
package import BatchIdentifiers

extension PostgresQuery {
  /// The query for the rows of some keys, in their order, whatever else was asked for.
  ///
  /// - Throws: `BatchError` of code `invalidIdentifier` for a key of other columns.
  package func restricted(to keys: RowKeys) throws(BatchError) -> PostgresQuery {
    let (source, condition, number) = try keys.reading(in: table)
    var query = self
    query.selection = .init(source: source, condition: condition, order: number)
    return query
  }

  /// The keys of a list as the server would select them: each value in the one text that it has.
  ///
  /// - Throws: The server's error for a text that is no value of its type.
  func canonical(
    _ list: PackedIdentifiers,
    in session: PostgresSession
  ) throws(BatchError) -> PackedIdentifiers {
    let plain: [PostgresKey.Form] = [.integer, .text, .blob]
    if key.columns.allSatisfy({ plain.contains($0.form) }) { return list }
    var keys = KeyCollector(self, store: list.header.storeIdentifier, spill: BlockSpill())
    let selected = key.columns.enumerated().map { index, column in
      let text = column.selection(of: RowKeys.column(index))
      // Numbers are equal however many zeros they end with.
      return column.type != "numeric"
        ? text
        : "CASE WHEN pg_catalog.strpos(\(text), '.') > 0"
          + " THEN pg_catalog.rtrim(pg_catalog.rtrim(\(text), '0'), '.') ELSE \(text) END"
    }
    for start in stride(from: 0, to: list.count, by: 10_000) {
      let part = try RowKeys(list, start..<min(start + 10_000, list.count), key: key)
      let relation = try part.relation(in: table, after: 0).relation
      let sql =
        "SELECT \(selected.joined(separator: ", ")) FROM \(relation.sql) ORDER BY \(RowKeys.number)"
      try session.forEachRow(sql, relation.values, format: .binary) { row throws(BatchError) in
        for column in key.columns.indices {
          try row.withValue(column) { value throws(BatchError) in try keys.append(value, column) }
        }
        try keys.endRow()
      }
    }
    return keys.finish()
  }
}
#endif
