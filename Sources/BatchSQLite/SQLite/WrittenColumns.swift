/// What a change writes: columns of some tables, and whole rows of others.
package struct WrittenColumns: Sendable, Equatable {
  /// The columns of each table, folded to ASCII lower case as SQLite compares names; nil if rows
  /// are inserted or deleted.
  private var columns: [String: Set<String>?] = [:]

  /// The names of the tables as given.
  package private(set) var tables: Set<String> = []

  package init() {}

  var isEmpty: Bool { tables.isEmpty }

  mutating func insert(_ names: some Sequence<String>, of table: String) {
    tables.insert(table)
    let folded = Set(names.map(SQLName.folded))
    columns.updateValue(
      columns[SQLName.folded(table), default: []].map { $0.union(folded) },
      forKey: SQLName.folded(table)
    )
  }

  mutating func insertRows(of table: String) {
    tables.insert(table)
    columns.updateValue(nil, forKey: SQLName.folded(table))
  }

  mutating func formUnion(_ other: WrittenColumns) {
    tables.formUnion(other.tables)
    columns.merge(other.columns) { left, right in
      left.flatMap { left in right.map { left.union($0) } }
    }
  }

  package func contains(table: String) -> Bool { columns[SQLName.folded(table)] != nil }

  package func containsRows(of table: String) -> Bool {
    if case .some(.none) = columns[SQLName.folded(table)] { true } else { false }
  }

  /// The given columns that may change when the table is written.
  ///
  /// Generated columns may depend on any other. If rows are inserted or deleted, all columns may
  /// change, and `*` stands for counted rows.
  package func changed(
    of names: Set<String>,
    in table: String,
    generated: Set<String>
  ) -> Set<String> {
    guard contains(table: table) else { return [] }
    if containsRows(of: table) { return names.isEmpty ? ["*"] : names }
    return written(of: names, in: table).union(names.intersection(generated))
  }

  /// The given columns that are written; all of them if rows are inserted or deleted.
  func written(of names: Set<String>, in table: String) -> Set<String> {
    guard let written = columns[SQLName.folded(table)] else { return [] }
    guard let written else { return names }
    return names.filter { written.contains(SQLName.folded($0)) }
  }
}
