import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ModelEntity {
  /// A row with some values written to it; nil if a column may convert one.
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

  /// The row inserted with some values; nil if a column may convert one.
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

  /// The columns that show whether a row was changed.
  var comparedSlots: [Int] { versionSlot.map { [$0] } ?? Array(columns.indices) }

  /// The columns that show whether a row was changed, with their earlier values.
  func compared(_ row: [SQLValue]) -> [(slot: Int, value: SQLValue)] {
    if let versionSlot { return [(versionSlot, row[versionSlot])] }
    return row.enumerated().map { ($0, $1) }
  }

  /// The condition for the row of a key whose columns still have the values bound to parameters
  /// from a number on.
  func condition(
    comparing slots: [Int],
    from first: Int
  ) throws(BatchError) -> String {
    let comparisons = slots.enumerated().map { index, slot in
      "\(SQLName.quoted(columns[slot])) COLLATE BINARY IS ?\(first + index)"
    }
    // In groups, since SQLite refuses expressions nested a thousand deep.
    let groups = stride(from: 0, to: comparisons.count, by: 100).map {
      "(\(comparisons[$0..<min($0 + 100, comparisons.count)].joined(separator: " AND ")))"
    }
    return ([try keyCondition()] + groups).joined(separator: " AND ")
  }

  /// Whether a row is the one read before, as far as can be known.
  func isSameVersion(_ row: [SQLValue], _ other: [SQLValue]) -> Bool {
    if let versionSlot { return row[versionSlot] == other[versionSlot] }
    return row.isIdentical(to: other)
  }

  /// The writable columns.
  var writableSlots: [Int] {
    columns.indices.filter {
      !generatedSlots.contains($0) && !keySlots.contains($0) && $0 != versionSlot
    }
  }

  /// The values of a row in its writable columns.
  func writable(_ row: [SQLValue]) -> [Int: SQLValue] {
    var values: [Int: SQLValue] = [:]
    for slot in writableSlots where slot < row.count { values[slot] = row[slot] }
    return values
  }
}
