import BatchIdentifiers

/// Rows as they were before a change, by their keys.
struct RowsBefore: Sendable {
  /// The key of each row.
  let keys: ValueBlock
  /// What the recorded columns of each row were.
  let values: ValueBlock
  /// Both as a record keeps them, if that is known already.
  private var known: (keys: [UInt8], values: [UInt8])?

  /// - Parameters:
  ///   - rows: The rows, with their keys first.
  ///   - keyCount: How many columns these are.
  init(_ rows: ValueBlock, keyCount: Int) {
    self.init(
      keys: rows.columns(0..<keyCount),
      values: rows.columns(keyCount..<rows.columnCount)
    )
  }

  init(keys: ValueBlock, values: ValueBlock) {
    self.keys = keys
    self.values = values
  }

  /// Some of the rows.
  func selecting(_ rows: [Int]) -> RowsBefore {
    RowsBefore(keys: keys.selecting(rows), values: values.selecting(rows))
  }

  /// Both as a record keeps them.
  var packed: (keys: [UInt8], values: [UInt8]) {
    known ?? (PackedValues.pack(keys), PackedValues.pack(values))
  }

  /// The same, packed once and for all.
  var packing: RowsBefore {
    var rows = self
    rows.known = packed
    return rows
  }
}

/// Rows that a worker has read, and packed, while the lane wrote other chunks.
package struct RowsAhead: Sendable {
  let rows: RowsBefore
  /// What the lane's ``WriterLane/lookCount`` was before they were read.
  let lookCount: Int

  init(_ rows: RowsBefore, lookCount: Int) {
    self.rows = rows.packing
    self.lookCount = lookCount
  }

  /// How many bytes of values wait for the lane.
  var byteCount: Int { rows.keys.byteCount + rows.values.byteCount }
}
