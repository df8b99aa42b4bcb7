import BatchRuns
import BatchIdentifiers

/// The parts of a table or view that its rows depend on: its kind, key and columns.
package struct TableShape: Hashable, Sendable {
  /// A column, and what determines its values: its type, its collation, and whether SQLite computes
  /// it.
  struct Column: Hashable, Sendable {
    let name: String
    let type: String
  }

  let name: String
  /// The kind of table; for a view or virtual table, with a hash of its definition.
  let kind: String
  /// The columns that find rows; empty if rows are not looked up, or by columns that nothing in the
  /// schema makes unique.
  let key: [String]
  let columns: [Column]

  func place(of name: String) -> Int? { columns.firstIndex { SQLName.equal($0.name, name) } }
}

/// What a run requires of a table, as it was when the run began.
struct ExpectedTable: Hashable, Sendable {
  let shape: TableShape
  /// The columns that the run reads or writes, in lower case.
  let used: Set<String>
  /// Whether the run deletes rows and keeps copies of them, so that no column may be missed.
  let isWhole: Bool

  /// What others have changed that concerns the run, as a clause about the table; nil if the run
  /// may continue.
  ///
  /// New columns do not concern the run, nor do columns that it does not use. `now` is nil if the
  /// table no longer exists.
  func change(to now: TableShape?) -> String? {
    guard let now else { return "is gone" }
    guard now.kind == shape.kind else {
      let kinds = [shape, now].map { $0.kind.prefix { $0 != " " } }
      return kinds[0] == kinds[1] ? "is defined in another way" : "is a \(kinds[1]) now"
    }
    let before = shape.columns.filter(isUsed)
    let gone = before.filter { now.place(of: $0.name) == nil }
    if !gone.isEmpty {
      return "has no column \(gone.map(\.name).joined(separator: ", ")) any more"
    }
    // SQLite considers it the same name, but lines and answers of programs would contain both.
    for column in before {
      guard let place = now.place(of: column.name), now.columns[place].name != column.name else {
        continue
      }
      return "has the column \(now.columns[place].name) instead of \(column.name)"
    }
    for column in before {
      let type = now.place(of: column.name).map { now.columns[$0].type } ?? ""
      if type != column.type {
        return "has the type \(type.isEmpty ? "none" : type) for column \(column.name) instead of"
          + " \(column.type.isEmpty ? "none" : column.type)"
      }
    }
    if now.key.map(SQLName.folded) != shape.key.map(SQLName.folded) {
      return now.key.isEmpty
        ? "has no key any more: nothing makes \(shape.key.joined(separator: ", ")) unique"
        : "has the key \(now.key.joined(separator: ", ")) instead of"
          + " \(shape.key.joined(separator: ", "))"
    }
    if let moved = moved(in: now) {
      return "has other columns around \(moved): another column may have got its name"
    }
    let new = now.columns.filter { shape.place(of: $0.name) == nil }
    if shape.kind == Entity.Kind.table.rawValue,
      let hiding = new.first(where: { RowIDName.all.contains(SQLName.folded($0.name)) })
    {
      return "now has a column \(hiding.name), which hides the rowids of its rows"
    }
    guard isWhole, !new.isEmpty else { return nil }
    return "has got \(new.map(\.name).joined(separator: ", ")), whose values would be deleted"
      + " without a copy"
  }

  /// The table up to the last column that the run uses.
  var withoutNewColumns: ExpectedTable {
    let end = shape.columns.lastIndex(where: isUsed).map { $0 + 1 } ?? 0
    let shape = TableShape(
      name: shape.name,
      kind: shape.kind,
      key: shape.key,
      columns: Array(shape.columns[..<end])
    )
    return ExpectedTable(shape: shape, used: used, isWhole: isWhole)
  }

  private func isUsed(_ column: TableShape.Column) -> Bool {
    used.contains(SQLName.folded(column.name))
  }

  /// A used column that may be another one by now.
  ///
  /// If a column is renamed, another may get its old name, and nothing in a schema tells which of
  /// them had it before. But SQLite appends new columns. So the columns that stay keep their order,
  /// and there are at most as many columns between two of them as before.
  private func moved(in now: TableShape) -> String? {
    let staying = now.columns.enumerated().compactMap { place, column in
      shape.place(of: column.name).map { (before: $0, now: place) }
    }
    let start = (before: -1, now: -1)
    for (index, column) in staying.enumerated() where isUsed(shape.columns[column.before]) {
      let isInOrder = staying.allSatisfy { other in
        (other.before < column.before) == (other.now < column.now)
      }
      let last = index == 0 ? start : staying[index - 1]
      let next = index + 1 < staying.count ? staying[index + 1] : nil
      let hasRoom =
        column.now - last.now <= column.before - last.before
        && next.map { $0.now - column.now <= $0.before - column.before } ?? true
      if !isInOrder || !hasRoom { return shape.columns[column.before].name }
    }
    return nil
  }
}

extension Connection {
  /// A table or view as it is now; nil if it does not exist.
  ///
  /// The key remains `key` as long as that is possible; a nil key means that rows are not looked
  /// up.
  func shape(of table: String, keyedBy key: [String]? = nil) throws(BatchError) -> TableShape? {
    let schema = try Schema(reading: self, only: table, preferring: key)
    guard let entity = schema.entities.first else { return nil }
    var kind = entity.kind.rawValue
    if entity.kind != .table {
      let sql = try texts("SELECT sql FROM main.sqlite_schema WHERE name = ?", .text(entity.table))
      // SQLite adds quotes when it renames what a view reads, and keeps them when that is undone.
      let definition = sql.joined().filter { !"\"`[]".contains($0) }
      kind += " \(String(XXHash64.hash(Array(definition.utf8)), radix: 16))"
    }
    return TableShape(
      name: entity.table,
      kind: kind,
      key: key == nil ? [] : entity.key?.columns ?? [],
      columns: entity.attributes.map { attribute in
        var type = attribute.type
        if let collation = collation(ofColumn: attribute.column, of: entity.table),
          collation != "BINARY"
        {
          type += " COLLATE \(collation)"
        }
        if attribute.isGenerated { type += " (generated)" }
        if key != nil, entity.key?.isRowID == true, entity.key?.columns == [attribute.column] {
          type += " (rowid)"
        }
        return .init(name: attribute.column, type: type)
      }
    )
  }
}
