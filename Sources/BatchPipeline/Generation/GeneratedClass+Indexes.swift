import BatchJobs
import BatchSQLite

extension GeneratedClass {
  /// Adds the table's indexes to the mapping, or to the comments if a mapping cannot express them.
  ///
  /// Unless upserts are requested, uniqueness becomes a comment: SQLite refuses a second row, but a
  /// mapping with uniqueness overwrites the first.
  mutating func addIndexes(upserts: Bool) {
    if upserts, let key = table.entity.key, key.origin == .primaryKey {
      add(".unique", over: key.columns)
    }
    for index in table.parts.indexes where index.origin != .primaryKey {
      let columns = index.columns.compactMap(\.name)
      let isOverColumns = columns.count == index.columns.count && !index.isPartial
      let isAdded =
        if index.isUnique {
          upserts && isOverColumns && add(".unique", over: columns)
        } else {
          isOverColumns && index.isInPlainOrder && add(".index", over: columns)
        }
      if !isAdded { remark(on: index) }
    }
  }

  /// Adds an entry for some columns; returns false if one of them is not a settable property.
  @discardableResult
  private mutating func add(_ kind: String, over columns: [String]) -> Bool {
    let names = columns.compactMap { column in
      properties.first { property in
        !property.isReadOnly && property.column.map { SQLName.equal($0, column) } ?? false
      }?.name
    }
    guard names.count == columns.count else { return false }
    let list = names.map(Self.literal).joined(separator: ", ")
    let entry = [kind, names.count == 1 ? list : "[\(list)]"]
    if !constraints.contains(entry) { constraints.append(entry) }
    return true
  }

  private mutating func remark(on index: TableParts.Index) {
    let columns = index.columns.map { column in
      (column.name ?? "an expression") + (column.isDescending ? " DESC" : "")
    }
    let rows = index.isPartial ? " in some rows" : ""
    let remark =
      "\(index.isUnique ? "Unique" : "Index")\(rows): \(columns.joined(separator: ", "))."
    if !remarks.contains(remark) { remarks.append(remark) }
  }
}

extension TableParts.Index {
  /// Whether all columns are ascending with the default collation, as in indexes of a mapping.
  fileprivate var isInPlainOrder: Bool {
    !columns.contains(where: \.isDescending) && !(sql?.uppercased().contains("COLLATE") ?? false)
  }
}
