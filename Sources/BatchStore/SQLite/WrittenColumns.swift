/// What is written: columns of some tables, and whole rows of others.
package struct WrittenColumns: Sendable, Equatable {
  /// The columns of each table, in ASCII lower case as SQLite compares names; nil where rows come or go.
  private var columns: [String: Set<String>?] = [:]

  /// The names of the tables as they were given.
  package private(set) var tables: Set<String> = []

  /// Nothing.
  package init() {}

  /// Whether nothing is written.
  var isEmpty: Bool { tables.isEmpty }

  /// Adds columns that are set in rows of a table.
  mutating func insert(_ names: some Sequence<String>, of table: String) {
    tables.insert(table)
    let folded = Set(names.map(SQLName.folded))
    columns.updateValue(
      columns[SQLName.folded(table), default: []].map { $0.union(folded) },
      forKey: SQLName.folded(table)
    )
  }

  /// Adds that rows of a table come or go.
  mutating func insertRows(of table: String) {
    tables.insert(table)
    columns.updateValue(nil, forKey: SQLName.folded(table))
  }

  /// Adds what something else writes.
  mutating func formUnion(_ other: WrittenColumns) {
    tables.formUnion(other.tables)
    columns.merge(other.columns) { left, right in
      left.flatMap { left in right.map { left.union($0) } }
    }
  }

  /// Whether something of a table is written.
  package func contains(table: String) -> Bool { columns[SQLName.folded(table)] != nil }

  /// Whether rows of a table come or go.
  func containsRows(of table: String) -> Bool {
    if case .some(.none) = columns[SQLName.folded(table)] { true } else { false }
  }

  /// Those of some columns of a table that have other values when it is written: a generated one may
  /// be made of any other, and where rows come or go all may, `*` if it is only the rows that count.
  package func changed(
    of names: Set<String>,
    in table: String,
    generated: Set<String>
  ) -> Set<String> {
    guard contains(table: table) else { return [] }
    if containsRows(of: table) { return names.isEmpty ? ["*"] : names }
    return written(of: names, in: table).union(names.intersection(generated))
  }

  /// Those of some columns of a table that are written: all of them where its rows come or go.
  func written(of names: Set<String>, in table: String) -> Set<String> {
    guard let written = columns[SQLName.folded(table)] else { return [] }
    guard let written else { return names }
    return names.filter { written.contains(SQLName.folded($0)) }
  }
}
