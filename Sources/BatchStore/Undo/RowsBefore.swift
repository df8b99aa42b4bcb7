import BatchIdentifiers

/// Rows before a change, by key.
struct RowsBefore: Sendable {
  /// The key of each row.
  let keys: ValueBlock
  /// The old values of each row's recorded columns.
  let values: ValueBlock
  /// Both in packed form, if already known.
  private var known: (keys: [UInt8], values: [UInt8])?

  /// - Parameters:
  ///   - rows: The rows, with their keys first.
  ///   - keyCount: The number of key columns.
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

  /// Both in packed form.
  var packed: (keys: [UInt8], values: [UInt8]) {
    known ?? (PackedValues.pack(keys), PackedValues.pack(values))
  }

  /// The same, with the packed form computed once.
  var packing: RowsBefore {
    var rows = self
    rows.known = packed
    return rows
  }
}

/// Rows that a worker has read and packed while the lane wrote other chunks.
package struct RowsAhead: Sendable {
  let rows: RowsBefore
  /// The lane's ``WriterLane/lookCount`` before they were read.
  let lookCount: Int

  init(_ rows: RowsBefore, lookCount: Int) {
    self.rows = rows.packing
    self.lookCount = lookCount
  }

  /// The bytes of values waiting for the lane.
  var byteCount: Int { rows.keys.byteCount + rows.values.byteCount }
}
