import BatchRuns
import BatchIdentifiers

struct RowsBefore: Sendable {
  let keys: ValueBlock
  let values: ValueBlock
  /// The packed form of both, if already computed.
  private var known: (keys: [UInt8], values: [UInt8])?

  /// The columns of the key come first in `rows`.
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

  func selecting(_ rows: [Int]) -> RowsBefore {
    RowsBefore(keys: keys.selecting(rows), values: values.selecting(rows))
  }

  var packed: (keys: [UInt8], values: [UInt8]) {
    known ?? (PackedValues.pack(keys), PackedValues.pack(values))
  }

  var packing: RowsBefore {
    var rows = self
    rows.known = packed
    return rows
  }
}

/// What a worker has read about a chunk while the lane wrote others; valid until another connection
/// commits.
package struct ReadAhead: Sendable {
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
