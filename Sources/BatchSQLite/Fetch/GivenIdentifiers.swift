package import BatchIdentifiers

extension PackedIdentifiers {
  /// The identifiers without those that name the same row of a table as an earlier one.
  ///
  /// SQLite considers different keys equal if a column has a collation such as NOCASE, or converts
  /// what it stores. Rows that a query finds have one key each, but a list written by hand may name
  /// a row by several.
  ///
  /// Returns the list itself if SQLite would store and distinguish all keys as they are. Writes
  /// nothing to the database.
  package func distinctRows(
    of entity: Entity,
    by key: EntityKey,
    in connection: Connection
  ) throws(BatchError) -> PackedIdentifiers {
    guard entity.kind == .table, header.keyKind == .encoded, count > 0 else { return self }
    let columns = key.columns.map { KeyColumn($0, of: entity, key, in: connection) }
    guard try mayNameRowsTwice(columns) else { return self }
    let names = columns.indices.map { "c\($0)" }
    let selected = zip(columns, names).map { "\(SQLName.quoted($0.name)) AS \($1)" }
    let compared = zip(columns, names).map { "\($1) COLLATE \(SQLName.quoted($0.collation))" }
    // With the affinities of the columns, and the collations of their index.
    try connection.execute(
      """
      CREATE TEMP TABLE _batch_given AS SELECT \(selected.joined(separator: ", ")) \
      FROM \(SQLName.quoted(entity.table)) LIMIT 0
      """
    )
    defer { try? connection.execute("DROP TABLE temp._batch_given") }
    try connection.execute(
      """
      CREATE UNIQUE INDEX temp._batch_given_rows ON _batch_given \
      (\(compared.joined(separator: ", ")))
      """
    )
    let places = names.map { _ in "?" }.joined(separator: ", ")
    let insert = try connection.prepare(
      "INSERT OR IGNORE INTO temp._batch_given VALUES (\(places))"
    )
    var reader = EncodedKey.ComponentReader()
    var firsts = RangeSet<Int>()
    for start in stride(from: 0, to: count, by: Self.partCount) {
      let keys = try encodedKeys(in: start..<min(start + Self.partCount, count))
      for number in keys.indices {
        try insert.bind(keys, number, slots: Array(1...columns.count), with: &reader)
        try insert.run()
        let place = start + number
        if connection.changes > 0 { firsts.insert(contentsOf: place..<(place + 1)) }
      }
    }
    return try firsts.ranges.first == 0..<count ? self : slice(firsts.ranges).packed
  }

  private static var partCount: Int { 10_000 }

  /// Whether SQLite could consider a key equal to one with other bytes.
  private func mayNameRowsTwice(_ columns: [KeyColumn]) throws(BatchError) -> Bool {
    var reader = EncodedKey.ComponentReader()
    var isPlain = true
    for start in stride(from: 0, to: count, by: Self.partCount) where isPlain {
      let keys = try encodedKeys(in: start..<min(start + Self.partCount, count))
      unsafe keys.forEachKey { key in
        var number = 0
        unsafe reader.forEachComponent(of: key) { component in
          if number < columns.count, !columns[number].isPlain(component) { isPlain = false }
          number += 1
        }
      }
    }
    return !isPlain
  }
}

private struct KeyColumn {
  let name: String
  let collation: String
  private let kept: StorageClasses

  init(_ name: String, of entity: Entity, _ key: EntityKey, in connection: Connection) {
    self.name = name
    collation =
      key.collations[name] ?? connection.collation(ofColumn: name, of: entity.table) ?? "BINARY"
    kept = entity.attributes.first { $0.column == name }?.keptClasses ?? []
  }

  /// Whether SQLite considers values equal only if their bytes are.
  func isPlain(_ component: RawKeyComponent) -> Bool {
    switch component {
    case .null, .blob: true
    case .text: kept.contains(.text) && SQLName.equal(collation, "BINARY")
    // A column that keeps both classes considers 1 and 1.0 the same key.
    case .integer: kept.contains(.integer) && !kept.contains(.real)
    case .real: kept.contains(.real) && !kept.contains(.integer)
    }
  }
}
