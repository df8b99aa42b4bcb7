package import BatchRuns
package import BatchIdentifiers

package struct RowSetReading: Sendable {
  private let columns: [String]
  private let entity: Entity
  private let key: EntityKey

  package struct Rows: Sendable {
    package fileprivate(set) var values: ValueBlock
    /// The index of each row's key.
    package fileprivate(set) var numbers: [Int] = []
    /// How many of the first keys were looked up.
    package fileprivate(set) var reached: Int
  }

  /// Prepares to read columns of an entity whose key is the rowid.
  package init(of columns: [String], in entity: Entity) throws(BatchError) {
    self.columns = columns
    self.entity = entity
    key = try entity.requireKey()
  }

  private func sql(for keys: ChunkKeys) -> String {
    let names = columns.map(SQLName.quoted) + [SQLName.quoted(key.columns[0])]
    let conditions = [keys.condition(key: key), entity.condition].compactMap(\.self)
    // In key order.
    return """
      SELECT \(RowCollector.columns(names)) FROM \(SQLName.quoted(entity.table)) NOT INDEXED \
      WHERE \(conditions.joined(separator: " AND "))
      """
  }

  /// Reads the rows of some keys, in the caller's transaction.
  ///
  /// The row whose texts and blobs reach `byteLimit` bytes is the last.
  ///
  /// - Returns: The rows, and how far they reach.
  package func read(
    _ keys: ChunkKeys,
    holding byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> Rows {
    let statement = try connection.prepare(sql(for: keys))
    let count = keys.identifierCount
    var rows = Rows(
      values: ValueBlock(columns: columns.count + 1, capacity: count),
      reached: count
    )
    rows.numbers.reserveCapacity(count)
    try keys.forEachBinding(of: statement, key: key) { numbers throws(BatchError) in
      guard rows.reached == count else { return }
      let found = rows.values.count
      let collected = try connection.collector.collect(
        from: statement,
        into: &rows.values,
        upTo: byteLimit
      )
      guard collected != .tooMany else { throw BatchError.ambiguousKey(of: entity, key) }
      var numbers = numbers
      for row in found..<rows.values.count {
        guard let number = numbers.next(rows.values.word(row, columns.count)) else {
          throw BatchError.ambiguousKey(of: entity, key)
        }
        rows.numbers.append(number)
        if collected == .some { rows.reached = number + 1 }
      }
    }
    return rows
  }
}
