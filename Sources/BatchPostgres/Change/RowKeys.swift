#if PostgreSQL
import BatchRuns
package import BatchIdentifiers

/// The keys of a chunk, in the form by which a statement finds the rows.
package struct RowKeys: ChunkKeyList {
  private enum Keys {
    /// All integers of a range without gaps; each row in the range was selected.
    case range(ClosedRange<Int64>)
    case integers([Int64])
    case encoded(EncodedKeys)
  }

  private let key: PostgresKey
  private let keys: Keys
  /// Whether a key of NULLs stands for any key.
  private var isSample = false
  /// The pages of the table to which statements are confined; nil for all.
  ///
  /// They are a hint. If a statement does not find a row there, the row may be elsewhere, and a
  /// statement with the keys of ``anywhere`` must follow.
  private(set) var pages: ClosedRange<Int64>?

  package init(
    _ list: PackedIdentifiers,
    _ positions: Range<Int>,
    key: PostgresKey
  ) throws(BatchError) {
    guard key.isInteger, list.header.keyKind == .integer else {
      self.init(.encoded(try list.encodedKeys(in: positions)), key)
      return
    }
    self.init(try list.integers(in: positions), key)
  }

  private init(_ keys: Keys, _ key: PostgresKey, _ pages: ClosedRange<Int64>? = nil) {
    self.keys = keys
    self.key = key
    self.pages = pages
  }

  /// The keys with the pages in which their rows probably lie, unless looking up each row is
  /// faster.
  package func near(_ pages: ClosedRange<Int64>?) -> RowKeys {
    guard let pages, pages.span < count / 2 else { return anywhere }
    return RowKeys(keys, key, pages)
  }

  package var anywhere: RowKeys { pages == nil ? self : RowKeys(keys, key) }

  var isNear: Bool { pages != nil }

  /// Whether the server writes each value of a key in one way, whatever the settings.
  var hasFields: Bool { key.columns.allSatisfy { [.integer, .text, .uuid].contains($0.form) } }

  /// The keys in the successive ways to look for their rows; each way finds all rows that the
  /// earlier ones would.
  var attempts: [RowKeys] { isNear ? [self, anywhere] : [self] }

  private init(_ integers: [Int64], _ key: PostgresKey) {
    if key.canBeRange, let first = integers.first, let last = integers.last, first <= last,
      (first...last).span == integers.count - 1,
      zip(integers, integers.dropFirst()).allSatisfy({ $0 < $1 })
    {
      self.init(.range(first...last), key)
    } else {
      self.init(.integers(integers), key)
    }
  }

  /// A sample key, with which the server checks or explains statements.
  static func sample(of key: PostgresKey) throws(BatchError) -> RowKeys {
    if key.isInteger { return RowKeys(.integers([0]), key) }
    var encoder = EncodedKey.Encoder()
    for _ in key.columns { encoder.appendNull() }
    var list = IdentifierListBuilder(storeIdentifier: "", entityName: "", keyKind: .encoded)
    list.append(encoded: encoder.bytes.span)
    var keys = RowKeys(.encoded(try list.finish().encodedKeys(in: 0..<1)), key)
    keys.isSample = true
    return keys
  }

  package enum Values: Sendable {
    case integers([Int64])
    case encoded(EncodedKeys)
  }

  package var values: Values {
    switch keys {
    case .range(let range): .integers(Array(range))
    case .integers(let integers): .integers(integers)
    case .encoded(let encoded): .encoded(encoded)
    }
  }

  package var count: Int {
    switch keys {
    case .range(let range): range.span + 1
    case .integers(let integers): integers.count
    case .encoded(let encoded): encoded.count
    }
  }

  package func part(_ numbers: Range<Int>) -> RowKeys {
    numbers.count == count ? self : selecting(Array(numbers))
  }

  /// The keys with the given numbers, which must ascend.
  func selecting(_ numbers: [Int]) -> RowKeys {
    switch keys {
    case .range(let range):
      RowKeys(numbers.map { range.lowerBound + Int64($0) }, key)
    case .integers(let integers): RowKeys(numbers.map { integers[$0] }, key)
    case .encoded(let encoded):
      RowKeys(.encoded(encoded.selecting(numbers)), key, pages).near(pages)
    }
  }

  package func key(at number: Int) -> PrimaryKey {
    switch keys {
    case .range(let range): .integer(range.lowerBound + Int64(number))
    case .integers(let integers): .integer(integers[number])
    case .encoded(let encoded): .encoded(encoded[number])
    }
  }

  package var lookup: @Sendable (_ number: Int) -> PrimaryKey { { key(at: $0) } }

  // MARK: Statements

  /// The condition that finds the rows, after `place` other values of the statement.
  func condition(in table: PostgresTable, after place: Int) throws(BatchError) -> PostgresStatement
  {
    let columns = key.columns.map { PostgresName.qualified(table.name, $0.name) }
    if case .range(let range) = keys {
      return PostgresStatement(
        sql: "\(columns[0]) BETWEEN $\(place + 1) AND $\(place + 2)",
        values: [.integer(range.lowerBound), .integer(range.upperBound)]
      )
    }
    let arrays = try arrays()
    let sources = bound(arrays, after: place)
    let values = arrays.map(PostgresValue.array)
    if holdNull(arrays) {
      let equal = columns.enumerated().map { "\($1) IS NOT DISTINCT FROM \(Self.column($0))" }
      return PostgresStatement(
        sql: "EXISTS (SELECT FROM unnest(\(sources.joined(separator: ", "))) AS \(Self.alias) "
          + "(\(Self.columns(columns.count))) WHERE \(equal.joined(separator: " AND ")))",
        values: values
      )
    }
    if columns.count == 1 {
      return PostgresStatement(sql: "\(columns[0]) = ANY (\(sources[0]))", values: values)
    }
    return PostgresStatement(
      sql: "(\(columns.joined(separator: ", "))) IN "
        + "(SELECT * FROM unnest(\(sources.joined(separator: ", "))))",
      values: values
    )
  }

  /// The condition that finds the rows, perhaps among others, in a statement that has the keys as a
  /// relation after `place` other values.
  func condition(
    in table: PostgresTable,
    besideRelationAfter place: Int
  ) throws(BatchError) -> String {
    if let pages { return table.condition(ofPages: pages) }
    if let bounds = bounds(in: table) { return bounds }
    return try condition(in: table, after: place).sql
  }

  struct Companion {
    var sql: String { "\(RowKeys.alias).\(PostgresName.quoted(name))" }
    let name: String
    let values: PostgresArray
  }

  /// The keys as a relation with their numbers from 1 in the column ``number``, after `place` other
  /// values of the statement, and the condition that joins it with the rows; `alias` is another name
  /// of the table in the statement.
  func relation(
    in table: PostgresTable,
    as alias: String? = nil,
    after place: Int,
    with companions: [Companion] = []
  ) throws(BatchError) -> (relation: PostgresStatement, condition: String) {
    let arrays = try arrays()
    var sources = bound(arrays, after: place)
    for (index, companion) in companions.enumerated() {
      sources.append("$\(place + arrays.count + index + 1)::\(companion.values.element.arrayName)")
    }
    return (
      PostgresStatement(
        sql: relation(of: sources, named: companions.map(\.name)),
        values: (arrays + companions.map(\.values)).map(PostgresValue.array)
      ),
      joined(arrays, in: table, as: alias)
    )
  }

  /// The source, the condition, and the number of each row's key from 1 for a statement that finds
  /// the rows, takes no values and does not rename the table.
  func reading(
    in table: PostgresTable
  ) throws(BatchError) -> (source: String, condition: String, number: String) {
    if case .range(let range) = keys {
      let column = PostgresName.qualified(table.name, key.columns[0].name)
      let first = Self.literal(range.lowerBound)
      return (
        table.sql, "\(column) BETWEEN \(first) AND \(Self.literal(range.upperBound))",
        "\(column) - \(first) + 1"
      )
    }
    let arrays = try arrays()
    let sources = zip(key.columns, arrays).map { column, array in column.comparable(array.sql) }
    var rows = table.sql
    if table.query != nil, sources.count == 1, !holdNull(arrays) {
      // Unlike a join, this reaches the rows that are grouped by the key, and a query without an index is computed once
      // for the chunk, not for each key.
      let name = PostgresName.qualified(table.name, key.columns[0].name)
      rows =
        "(SELECT * FROM \(rows) WHERE \(name) = ANY (\(sources[0])) OFFSET 0)"
        + " AS \(PostgresName.quoted(table.name))"
    }
    return ("\(rows), \(relation(of: sources))", joined(arrays, in: table), Self.number)
  }

  /// The condition that a row's key is within the bounds of the keys, for a table whose index finds
  /// such a range; nil if the keys are not a range.
  ///
  /// Added to a join, it lets the server find a chunk's rows by one walk through the index instead
  /// of one for each row.
  func bounds(in table: PostgresTable, as alias: String? = nil) -> String? {
    guard case .range(let range) = keys else { return nil }
    let column = PostgresName.qualified(alias ?? table.name, key.columns[0].name)
    return
      "\(column) BETWEEN \(Self.literal(range.lowerBound)) AND \(Self.literal(range.upperBound))"
  }

  func number(in table: PostgresTable) -> String? {
    guard case .range(let range) = keys else { return nil }
    let column = PostgresName.qualified(table.name, key.columns[0].name)
    return "\(column) - \(Self.literal(range.lowerBound)) + 1"
  }

  private static func literal(_ integer: Int64) -> String { "'\(integer)'::pg_catalog.int8" }

  private func joined(
    _ arrays: [PostgresArray],
    in table: PostgresTable,
    as alias: String? = nil
  ) -> String {
    let equality = holdNull(arrays) ? "IS NOT DISTINCT FROM" : "="
    let equal = key.columns.enumerated().map { index, column in
      "\(PostgresName.qualified(alias ?? table.name, column.name)) \(equality) \(Self.column(index))"
    }
    return ((pages.map { [table.condition(ofPages: $0)] } ?? []) + equal)
      .joined(separator: " AND ")
  }

  private func relation(of sources: [String], named companions: [String] = []) -> String {
    let names = (1...key.columns.count).map { "_batch_\($0)" } + companions + ["_batch_number"]
    return "unnest(\(sources.joined(separator: ", "))) WITH ORDINALITY AS \(Self.alias)"
      + " (\(PostgresName.list(names)))"
  }

  static let number = "\(alias).\"_batch_number\""
  // No expression of a job can use this name: expressions are checked where no such relation
  // exists.
  private static let alias = "\"_batch_keys\""

  /// A column of the relation of keys.
  static func column(_ index: Int) -> String { "\(alias).\"_batch_\(index + 1)\"" }

  private static func columns(_ count: Int) -> String {
    PostgresName.list((1...count).map { "_batch_\($0)" })
  }

  /// The arrays as values of a statement, with elements comparable to the columns.
  private func bound(_ arrays: [PostgresArray], after place: Int) -> [String] {
    zip(key.columns, arrays).enumerated().map { index, source in
      source.0.comparable("$\(place + index + 1)::\(source.1.element.arrayName)")
    }
  }

  // MARK: Values

  private func arrays() throws(BatchError) -> [PostgresArray] {
    switch keys {
    case .range(let range): return [PostgresArray(range)]
    case .integers(let integers): return [PostgresArray(integers)]
    case .encoded(let encoded):
      var arrays = key.columns.map { PostgresArray(of: $0.form.element) }
      var reader = EncodedKey.ComponentReader()
      for number in encoded.indices {
        var column = 0
        try unsafe encoded.withBytes(at: number) { bytes throws(BatchError) in
          try unsafe reader.forEachComponent(of: bytes) { component throws(BatchError) in
            guard column < arrays.count, arrays[column].append(component) else {
              throw foreign(number)
            }
            column += 1
          }
        }
        guard column == arrays.count else { throw foreign(number) }
      }
      return arrays
    }
  }

  /// Whether a key contains NULL, as a declared key may; then no index finds the row.
  private func holdNull(_ arrays: [PostgresArray]) -> Bool {
    !isSample && arrays.contains(where: \.hasNull)
  }

  private func foreign(_ number: Int) -> BatchError {
    BatchError(
      .invalidIdentifier,
      "the key does not fit the columns \(key.columns.map(\.name).joined(separator: ", "))",
      remedy: "select the identifiers again"
    ).about(key(at: number))
  }
}

extension PostgresKey.Form {
  fileprivate var element: PostgresArray.Element {
    switch self {
    case .integer: .integer
    case .blob: .blob
    case .text, .uuid, .binary, .other: .text
    }
  }
}

extension PostgresArray {
  /// Appends a component of a key; returns whether it can be an element.
  fileprivate mutating func append(_ component: RawKeyComponent) -> Bool {
    switch (component, element) {
    case (.null, _): appendNull()
    case (.integer(let value), .integer): append(value)
    case (.integer(let value), .text): append(bytes: Array(String(value).utf8).span)
    case (.text(let bytes), .text), (.blob(let bytes), .blob):
      // The buffer is valid during this call.
      append(bytes: unsafe Span(_unsafeBytes: bytes))
    default: return false
    }
    return true
  }
}
#endif
