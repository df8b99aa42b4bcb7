import BatchJobs
import BatchSQLite

struct GeneratedTable {
  let entity: Entity
  let parts: TableParts
  /// The values that CHECK constraints list, by column.
  let lists: [String: [SQLValue]]
  /// Some rows; empty unless rows are sampled.
  let sample: [[SQLValue]]

  /// Whether Core Data created the table, with its own names and format of dates.
  var isCoreData: Bool {
    ["Z_PK", "Z_ENT", "Z_OPT"].allSatisfy { name in
      entity.attributes.contains { $0.column == name }
    }
  }

  func plain(_ name: String) -> String {
    guard isCoreData, name.hasPrefix("Z"), !name.hasPrefix("Z_"), name.count > 1 else {
      return name
    }
    return String(name.dropFirst())
  }

  /// Nil if the type is unknown.
  func type(of attribute: Attribute) -> ColumnType? {
    let index = entity.attributes.firstIndex { $0.column == attribute.column } ?? 0
    return ColumnType(
      declared: attribute.type,
      listed: lists[attribute.column],
      isCoreData: isCoreData,
      sample: sample.map { $0[index] }
    )
  }

  /// Whether a column has a value in every row.
  func isRequired(_ attribute: Attribute) -> Bool {
    !attribute.isOptional || isKey(attribute.column)
  }

  func isKey(_ column: String) -> Bool {
    entity.key?.columns.contains { SQLName.equal($0, column) } ?? false
  }

  /// Whether a column has a different value in every row.
  func isUnique(_ column: String) -> Bool {
    let isKey = entity.key.map { $0.columns.count == 1 && self.isKey(column) } ?? false
    return isKey
      || parts.indexes.contains { index in
        index.isUnique && !index.isPartial && index.columns.count == 1
          && index.columns[0].name.map { SQLName.equal($0, column) } ?? false
      }
  }

  var foreignKeys: [TableParts.ForeignKey] {
    var columns: Set<String> = []
    return parts.foreignKeys.filter {
      $0.columns.count == 1 && columns.insert($0.columns[0]).inserted
    }
  }

  /// The two foreign keys of a table that joins two others and has no other columns.
  var joinKeys: (TableParts.ForeignKey, TableParts.ForeignKey)? {
    let keys = foreignKeys
    guard keys.count == 2 else { return nil }
    let joined = keys.map { $0.columns[0] }
    let isJoin = entity.attributes.allSatisfy { attribute in
      joined.contains { SQLName.equal($0, attribute.column) }
        || entity.key?.origin == .rowID && isKey(attribute.column)
    }
    return isJoin ? (keys[0], keys[1]) : nil
  }
}
