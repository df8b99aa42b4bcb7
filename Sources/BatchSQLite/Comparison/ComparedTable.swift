import BatchRuns
import BatchIdentifiers

/// A table in both databases, and how its rows are found.
struct ComparedTable: Sendable {
  enum Key: Sendable, Equatable {
    /// The rowid, by a name valid in both, and whether a column of the table is the rowid.
    case rowID(String, isColumn: Bool)
    case columns([String])
  }

  let name: String
  let key: Key
  /// The columns that identify a row to people.
  let shownKey: [String]
  /// The columns stored in both, except the rowid.
  let columns: [String]
  let generatedColumns: [String]
  /// The table of the other file, if it has another name there.
  var nameInFile: String?
  /// Whether the table counts as empty because the other file legitimately lacks it.
  var isNew = false

  var keyColumns: [String] {
    switch key {
    case .rowID(let name, _): [name]
    case .columns(let names): names
    }
  }

  var hasRowID: Bool { if case .rowID = key { true } else { false } }

  /// Whether the key is a hidden rowid, chosen by SQLite.
  var hasHiddenRowID: Bool { if case .rowID(_, isColumn: false) = key { true } else { false } }
}

extension ComparedTable {
  struct Description {
    let name: String
    private let hasRowID: Bool
    private let columns: [String]
    private let generatedColumns: [String]
    private let primaryKey: [String]
    private let rowIDColumn: String?

    init(
      of name: String,
      hasRowID: Bool,
      schema: DatabaseName,
      in connection: Connection
    ) throws(BatchError) {
      self.name = name
      self.hasRowID = hasRowID
      let info = try connection.prepare(
        "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?, ?) WHERE hidden IN (0, 3)"
      )
      try info.bind(.text(name), at: 1)
      try info.bind(.text(schema.rawValue), at: 2)
      var columns: [String] = []
      var generated: [String] = []
      var key: [(place: Int64, name: String, type: String)] = []
      while try info.step() {
        columns.append(info.text(at: 0))
        if info.integer(at: 3) == 3 { generated.append(info.text(at: 0)) }
        if info.integer(at: 2) > 0 {
          key.append((info.integer(at: 2), info.text(at: 0), info.text(at: 1)))
        }
      }
      self.columns = columns
      generatedColumns = generated
      key.sort { $0.place < $1.place }
      // Use the table's name for sqlite_sequence, since it stays when rows move.
      primaryKey = SQLName.equal(name, "sqlite_sequence") ? ["name"] : key.map(\.name)
      guard hasRowID, key.count == 1, SQLName.equal(key[0].type, "INTEGER") else {
        rowIDColumn = nil
        return
      }
      // `INTEGER PRIMARY KEY DESC` has an index and is not the rowid.
      let index = try connection.value(
        "SELECT 1 FROM pragma_index_list(?, ?) WHERE origin = 'pk'",
        .text(name),
        .text(schema.rawValue)
      )
      rowIDColumn = index == nil ? key[0].name : nil
    }

    /// A name for the rowid; nil if columns use all of its names.
    private var rowIDName: String? {
      rowIDColumn
        ?? ["rowid", "_rowid_", "oid"].first { name in
          !columns.contains { SQLName.equal($0, name) }
        }
    }

    /// Whether columns use all names of the rowid, so that no statement can name it.
    var hidesRowID: Bool { hasRowID && rowIDName == nil }

    /// Describes the columns that only one of the two has; nil if there are none.
    func otherColumns(than other: Description) -> String? {
      let added = columns.filter { !other.columns.contains($0) }.map { "\($0) added" }
      let removed = other.columns.filter { !columns.contains($0) }.map { "\($0) removed" }
      let all = added + removed
      return all.isEmpty ? nil : all.joined(separator: ", ")
    }

    /// The table with another one as its copy, whose rows have the same values in `key`; nil if
    /// that has no such columns.
    func matched(with copy: Description, by key: [String]) -> ComparedTable? {
      let known = Set(copy.columns)
      guard key.allSatisfy(known.contains) else { return nil }
      return ComparedTable(
        name: name,
        key: .columns(key),
        shownKey: key,
        columns: columns.filter(known.contains),
        generatedColumns: generatedColumns,
        nameInFile: copy.name
      )
    }

    /// The table as in both; nil if their rows are identified differently.
    func common(with other: Description) -> ComparedTable? {
      guard hasRowID == other.hasRowID else { return nil }
      let key: Key
      if hasRowID, !SQLName.equal(name, "sqlite_sequence") {
        guard let rowID = rowIDName, rowID == other.rowIDName else { return nil }
        key = .rowID(rowID, isColumn: rowIDColumn != nil)
      } else {
        guard primaryKey == other.primaryKey else { return nil }
        key = .columns(primaryKey)
      }
      let keyNames = if case .rowID(let name, _) = key { [name] } else { primaryKey }
      let known = Set(other.columns)
      return ComparedTable(
        name: name,
        key: key,
        shownKey: primaryKey.isEmpty || primaryKey != other.primaryKey ? keyNames : primaryKey,
        columns: columns.filter { known.contains($0) && $0 != rowIDColumn },
        generatedColumns: generatedColumns
      )
    }
  }
}

/// The two databases of a comparing connection.
enum DatabaseName: String {
  case database = "main"
  case file = "_batch_file"
}
