#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers

extension PostgresPlan {
  /// The longest time to look for rows that refer to one another.
  private static let orderTime = Duration.seconds(2)

  /// A warning that selected rows to which others refer may come before these, and so cannot be
  /// deleted; with an order that avoids it, if one by key does.
  ///
  /// The server checks foreign keys after each statement: that of a chunk, or, in an order that the
  /// job asks for, that of a row.
  func warningsAboutOrder(in session: PostgresSession) throws(BatchError) -> [String] {
    guard case .delete = job.action, identifiers == nil else { return [] }
    let references = table.references.filter { key in
      ["NO ACTION", "RESTRICT"].contains(key.onDelete) && table.referrers.contains(key)
    }
    guard !references.isEmpty, let found = try pairs(references, in: session) else { return [] }
    // Chunks may be committed in any order.
    let isMet = job.source.isOrdered ? found.first : found.any && found.count > chunkSize
    guard isMet else { return [] }
    let names = references.map(\.name.quotedForMessage).joined(separator: ", ")
    let end = job.skip.limit > 0 ? "skip decides how many may fail" : "the first one stops the run"
    var warning =
      "rows of \(table.title.quotedForMessage) refer to one another (\(names)), and one that comes before a row that"
      + " refers to it fails; \(end)"
    if found.smaller != found.greater {
      let terms = key.columns.map { Job.OrderTerm($0.name, descending: found.smaller).description }
      let list = terms.map(\.quotedForMessage).joined(separator: ", ")
      warning += "; none would with \"orderBy\": [\(list)]"
    }
    return [warning]
  }

  private var chunkSize: Int { job.chunkSizing(nil).size }

  private struct Pairs {
    let count: Int
    /// Whether some row comes before one that refers to it; whether some refer to others at all.
    let first: Bool
    let any: Bool
    /// Whether some refer to rows of smaller keys, and to rows of greater ones.
    let smaller: Bool
    let greater: Bool
  }

  /// Looks at the selected rows that refer to others of them; nil if that takes too long.
  private func pairs(
    _ references: [PostgresTable.ForeignKey],
    in session: PostgresSession
  ) throws(BatchError) -> Pairs? {
    let names =
      key.columns.map(\.name) + references.flatMap { $0.columns + $0.targetColumns }
    var places: [String: String] = [:]
    for name in names where places[name] == nil { places[name] = "c\(places.count)" }
    func place(_ name: String, _ row: String) -> String { "\(row).\(places[name] ?? "")" }
    let columns = places.sorted { $0.value < $1.value }
      .map { "\(PostgresName.quoted($0.key)) AS \($0.value)" }
    let joins = references.map { reference in
      let terms = zip(reference.columns, reference.targetColumns).map {
        "\(place($0, "child")) = \(place($1, "parent"))"
      }
      return "SELECT parent.*, child.number AS other FROM rows AS child JOIN rows AS parent"
        + " ON \(terms.joined(separator: " AND "))"
    }
    let keys = { (row: String) in
      "(\(key.columns.map { place($0.name, row) }.joined(separator: ", ")))"
    }
    let sql = """
      WITH rows AS MATERIALIZED (
        SELECT pg_catalog.row_number() OVER () AS number, q.* FROM (
          \(query.sql(.place, selecting: columns, atMost: nil))) AS q),
        pairs AS (
          SELECT p.number < c.number AS first, \(keys("p")) < \(keys("c")) AS smaller
          FROM (\(joins.joined(separator: " UNION ALL "))) AS p JOIN rows AS c ON c.number = p.other
          WHERE p.number <> c.number)
      SELECT (SELECT count(*) FROM rows), coalesce(bool_or(first), false), count(*) > 0,
        coalesce(bool_or(smaller), false), coalesce(bool_or(NOT smaller), false) FROM pairs
      """
    guard let found = try answer(to: sql, within: Self.orderTime, in: session) else { return nil }
    return Pairs(
      count: Int(found.integer(0, 0) ?? 0),
      first: found.isTrue(0, 1),
      any: found.isTrue(0, 2),
      smaller: found.isTrue(0, 3),
      greater: found.isTrue(0, 4)
    )
  }
}
#endif
