import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ModelEntity {
  /// A row after some values are written to it; nil if a column may convert one of them.
  func row(
    _ row: [SQLValue],
    setting slots: [Int],
    to values: [SQLValue]
  ) -> [SQLValue]? {
    var row = row
    for (slot, value) in zip(slots, values) {
      guard keptClasses[slot].contains(value.storageClass), !value.isNegativeZero else {
        return nil
      }
      row[slot] = value
    }
    return row
  }

  /// A row inserted with some values; nil if a column may convert one of them.
  func row(
    of identifier: PersistentIdentifier,
    setting slots: [Int],
    to values: [SQLValue]
  ) -> [SQLValue]? {
    var row = [SQLValue](repeating: .null, count: columns.count)
    for (slot, component) in zip(keySlots, identifier.key?.components ?? []) {
      if let slot { row[slot] = SQLValue(component) }
    }
    return self.row(row, setting: slots, to: values)
  }

  var comparedSlots: [Int] { versionSlot.map { [$0] } ?? Array(columns.indices) }

  /// The columns that show whether a row was changed, with their previous values.
  func compared(_ row: [SQLValue]) -> [(slot: Int, value: SQLValue)] {
    if let versionSlot { return [(versionSlot, row[versionSlot])] }
    return row.enumerated().map { ($0, $1) }
  }

  /// The condition for a row by its key whose columns still have the values of parameters, which
  /// begin at a number.
  func condition(
    comparing slots: [Int],
    from first: Int
  ) throws(BatchError) -> String {
    let comparisons = slots.enumerated().map { index, slot in
      "\(SQLName.quoted(columns[slot])) COLLATE BINARY IS ?\(first + index)"
    }
    // In groups, since SQLite refuses expressions that are nested a thousand deep.
    let groups = stride(from: 0, to: comparisons.count, by: 100).map {
      "(\(comparisons[$0..<min($0 + 100, comparisons.count)].joined(separator: " AND ")))"
    }
    return ([try keyCondition()] + groups).joined(separator: " AND ")
  }

  /// Whether a row is unchanged since it was read, as far as this can be known.
  func isSameVersion(_ row: [SQLValue], _ other: [SQLValue]) -> Bool {
    if let versionSlot { return row[versionSlot] == other[versionSlot] }
    return row.isIdentical(to: other)
  }

  var writableSlots: [Int] {
    columns.indices.filter {
      !generatedSlots.contains($0) && !keySlots.contains($0) && $0 != versionSlot
    }
  }

  func writable(_ row: [SQLValue]) -> [Int: SQLValue] {
    var values: [Int: SQLValue] = [:]
    for slot in writableSlots where slot < row.count { values[slot] = row[slot] }
    return values
  }
}
