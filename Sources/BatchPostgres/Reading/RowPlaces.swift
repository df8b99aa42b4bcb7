#if PostgreSQL
package import BatchIdentifiers

/// Where the rows of a list lie in their table, as far as a sample shows.
///
/// Looking for a chunk's rows in a few pages takes a fraction of the time of finding each in the index of its key. Rows
/// move whenever they are updated or the table is rewritten: places are a hint, and only keys say which row is which.
package struct RowPlaces: Sendable {
  /// The number of positions from one sampled row to the next.
  private static let distance = 1_000

  /// Whoever has the table locked is waited for with the first chunk, and why a table is not there is told then too.
  private static let options = TransactionOptions(
    isReadOnly: true,
    lockTimeout: .milliseconds(100),
    statementTimeout: .seconds(5)
  )

  private var samples: [(position: Int, page: Int64)] = []

  /// Looks up a sample of the rows at some positions of a list.
  ///
  /// There are none if the order of the list is not that of the table.
  package init(
    of list: PackedIdentifiers,
    _ positions: Range<Int>,
    key: PostgresKey,
    in table: PostgresTable,
    _ session: PostgresSession
  ) throws(BatchError) {
    // Older servers read the whole table to find a range of pages.
    guard table.hasPlaces(of: key), session.serverVersion >= 140_000, positions.count > 1 else {
      return
    }
    let sampled =
      stride(from: positions.lowerBound, to: positions.upperBound - 1, by: Self.distance)
      + [positions.upperBound - 1]
    var keys = IdentifierListBuilder(
      storeIdentifier: list.header.storeIdentifier,
      entityName: list.header.entityName,
      keyKind: list.header.keyKind
    )
    for position in sampled {
      unsafe try list.encodedKeys(in: position..<position + 1).forEachKey { key in
        unsafe keys.append(encoded: key)
      }
    }
    let (relation, join) = try RowKeys(keys.finishPacked(), 0..<sampled.count, key: key)
      .relation(in: table, after: 0)
    let ctid = PostgresName.qualified(table.name, "ctid")
    let found: PostgresResult
    do throws(BatchError) {
      found = try session.transaction(Self.options) { () throws(BatchError) in
        try session.execute(
          """
          SELECT \(RowKeys.number), (\(ctid)::text::point)[0]::bigint
          FROM \(table.sql), \(relation.sql) WHERE \(join) ORDER BY 1
          """,
          relation.values
        )
      }
    } catch {
      if session.isLost { throw error }
      return
    }
    let places = (0..<found.count).compactMap { row in
      found.integer(row, 0).flatMap { number in
        found.integer(row, 1).map { (position: sampled[Int(number) - 1], page: $0) }
      }
    }
    let ascending = Self.ascending(places)
    if ascending.count * 2 > sampled.count { samples = ascending }
  }

  /// The pages in which the rows at some positions probably lie; nil if nothing is known.
  package func pages(of positions: Range<Int>) -> ClosedRange<Int64>? {
    guard let first = samples.last(where: { $0.position <= positions.lowerBound }) ?? samples.first,
      let last = samples.first(where: { $0.position >= positions.upperBound - 1 }) ?? samples.last,
      first.page <= last.page
    else { return nil }
    return first.page...last.page
  }

  /// A longest part of the places whose pages ascend: the others have moved.
  private static func ascending(
    _ places: [(position: Int, page: Int64)]
  ) -> [(position: Int, page: Int64)] {
    // For each length, the part that ends on the least page, as a chain of indices.
    var ends: [Int] = []
    var before = [Int?](repeating: nil, count: places.count)
    for (index, place) in places.enumerated() {
      let length = ends.firstIndex { places[$0].page > place.page } ?? ends.count
      before[index] = length > 0 ? ends[length - 1] : nil
      if length < ends.count { ends[length] = index } else { ends.append(index) }
    }
    let chain = sequence(first: ends.last) { index in index.map { before[$0] } }
    return chain.prefix { $0 != nil }.compactMap { $0.map { places[$0] } }.reversed()
  }
}

extension PostgresTable {
  /// A page that no table has.
  static let lastPage = Int64(UInt32.max) - 1

  /// Whether a row has one place at a time, which the server can find by its page, and a key that finds it otherwise.
  func hasPlaces(of key: PostgresKey) -> Bool {
    kind == .table && key.origin != .declared && !key.isInteger
  }

  func condition(ofPages pages: ClosedRange<Int64>) -> String {
    let ctid = PostgresName.qualified(name, "ctid")
    return "\(ctid) >= '(\(pages.lowerBound),0)'::pg_catalog.tid"
      + " AND \(ctid) < '(\(pages.upperBound + 1),0)'::pg_catalog.tid"
  }
}
#endif
