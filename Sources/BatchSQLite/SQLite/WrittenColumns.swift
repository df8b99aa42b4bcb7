/// What is written: columns of some tables, and whole rows of others.
package struct WrittenColumns: Sendable, Equatable {
  /// The columns of each table, in ASCII lower case as SQLite compares names; nil if rows are
  /// inserted or deleted.
  private var columns: [String: Set<String>?] = [:]

  /// The names of the tables as given.
  package private(set) var tables: Set<String> = []

  /// Makes an empty value.
  package init() {}

  var isEmpty: Bool { tables.isEmpty }

  /// Adds columns that are set in a table.
  mutating func insert(_ names: some Sequence<String>, of table: String) {
    tables.insert(table)
    let folded = Set(names.map(SQLName.folded))
    columns.updateValue(
      columns[SQLName.folded(table), default: []].map { $0.union(folded) },
      forKey: SQLName.folded(table)
    )
  }

  /// Adds a table whose rows are inserted or deleted.
  mutating func insertRows(of table: String) {
    tables.insert(table)
    columns.updateValue(nil, forKey: SQLName.folded(table))
  }

  /// Adds what another value contains.
  mutating func formUnion(_ other: WrittenColumns) {
    tables.formUnion(other.tables)
    columns.merge(other.columns) { left, right in
      left.flatMap { left in right.map { left.union($0) } }
    }
  }

  /// Whether anything in a table is written.
  package func contains(table: String) -> Bool { columns[SQLName.folded(table)] != nil }

  /// Whether rows of a table are inserted or deleted.
  package func containsRows(of table: String) -> Bool {
    if case .some(.none) = columns[SQLName.folded(table)] { true } else { false }
  }

  /// Which of some columns of a table may change when it is written: generated ones may depend on
  /// any other, and if rows are inserted or deleted all may, `*` if only rows are counted.
  package func changed(
    of names: Set<String>,
    in table: String,
    generated: Set<String>
  ) -> Set<String> {
    guard contains(table: table) else { return [] }
    if containsRows(of: table) { return names.isEmpty ? ["*"] : names }
    return written(of: names, in: table).union(names.intersection(generated))
  }

  /// Which of some columns of a table are written: all of them if its rows are inserted or deleted.
  func written(of names: Set<String>, in table: String) -> Set<String> {
    guard let written = columns[SQLName.folded(table)] else { return [] }
    guard let written else { return names }
    return names.filter { written.contains(SQLName.folded($0)) }
  }
}
