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
}
#endif
