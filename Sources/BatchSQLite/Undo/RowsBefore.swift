import BatchRuns
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

/// What a worker has found out about a chunk while the lane wrote others; it holds until another
/// connection commits.
package struct ReadAhead: Sendable {
  /// The keys, with their rows' places.
  let keys: ChunkKeys
  /// The rows, packed, if they are to be recorded.
  let rows: RowsBefore?
  /// The lane's ``ForeignCommitWatch/lookCount`` before the first read.
  let lookCount: Int

  init(_ keys: ChunkKeys, _ rows: RowsBefore?, lookCount: Int) {
    self.keys = keys
    self.rows = rows?.packing
    self.lookCount = lookCount
  }

  /// The bytes of values waiting for the lane.
  var byteCount: Int { rows.map { $0.keys.byteCount + $0.values.byteCount } ?? 0 }
}
