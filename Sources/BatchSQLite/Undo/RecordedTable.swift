import BatchRuns
import BatchIdentifiers

struct RecordedTable: Equatable {
  /// A unique index, by those of its terms that are columns of the table.
  struct UniqueIndex: Equatable {
    let columns: [(name: String, collation: String)]

    static func == (left: UniqueIndex, right: UniqueIndex) -> Bool {
      left.columns.elementsEqual(right.columns, by: ==)
    }
  }

  let name: String
  /// The rowid, by a name that no column hides, or the primary key of a table without one.
  let key: [String]
  let columns: [String]
  /// The columns that distinguish a row from another that has taken its hidden rowid: those of the
  /// primary key, or all.
  let identity: Set<String>
  /// The indexes by which `REPLACE` may delete other rows.
  let uniqueIndexes: [UniqueIndex]

  /// Reads a table; nil if it does not exist, or if its columns use all names of the rowid.
  init?(_ name: String, in connection: Connection) throws(BatchError) {
    let table = try connection.prepare(
      "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name = ?"
    )
    try table.bind(.text(name), at: 1)
    guard try table.step() else { return nil }
    let hasRowID = table.integer(at: 0) == 0
    table.reset()
    let rows = try connection.prepare(
      "SELECT name, pk, hidden, upper(type) FROM pragma_table_xinfo(?, 'main')"
    )
    try rows.bind(.text(name), at: 1)
    var all: [String] = []
    var stored: [String] = []
    var primary: [(place: Int64, name: String, type: String)] = []
    while try rows.step() {
      all.append(rows.text(at: 0))
      if rows.integer(at: 2) == 0 { stored.append(rows.text(at: 0)) }
      if rows.integer(at: 1) > 0 {
        primary.append((rows.integer(at: 1), rows.text(at: 0), rows.text(at: 3)))
      }
    }
    primary.sort { $0.place < $1.place }
    // If the key is the rowid, it has no index.
    let hasKeyIndex = try connection.value(
      "SELECT 1 FROM pragma_index_list(?, 'main') WHERE origin = 'pk'",
      .text(name)
    )
    if !hasRowID {
      key = primary.map(\.name)
    } else if hasKeyIndex == nil, primary.count == 1 {
      key = [primary[0].name]
    } else {
      let rowID = RowIDName.all.first { rowID in
        !all.contains { SQLName.equal($0, rowID) }
      }
      guard let rowID else { return nil }
      key = [rowID]
    }
    let keyColumns = key
    columns = stored.filter { !keyColumns.contains($0) }
    identity =
      all.contains(key[0]) ? [] : Set(primary.isEmpty ? columns : primary.map(\.name))
    self.name = name
    uniqueIndexes = try Self.uniqueIndexes(of: name, in: connection)
  }

  private static func uniqueIndexes(
    of table: String,
    in connection: Connection
  ) throws(BatchError) -> [UniqueIndex] {
    let names = try connection.texts(
      #"SELECT name FROM pragma_index_list(?, 'main') WHERE "unique""#,
      .text(table)
    )
    var indexes: [UniqueIndex] = []
    for name in names {
      let rows = try connection.prepare(
        "SELECT name, coll FROM pragma_index_xinfo(?, 'main') WHERE key AND cid >= 0"
      )
      try rows.bind(.text(name), at: 1)
      var columns: [(name: String, collation: String)] = []
      while try rows.step() { columns.append((rows.text(at: 0), rows.text(at: 1))) }
      // An index on expressions alone has no columns left.
      if !columns.isEmpty { indexes.append(UniqueIndex(columns: columns)) }
    }
    return indexes
  }

  static func names(in connection: Connection) throws(BatchError) -> [String] {
    try connection.texts(
      #"""
      SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')
        AND name NOT LIKE '\_batch\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
      ORDER BY name
      """#
    )
  }

  var quoted: String { "main.\(SQLName.quoted(name))" }

  /// The condition for one row; the key's parameters are numbered from `parameter` on.
  func keyCondition(from parameter: Int) -> String {
    key.indices.map { "\(SQLName.quoted(key[$0])) IS ?\($0 + parameter)" }
      .joined(separator: " AND ")
  }
}
