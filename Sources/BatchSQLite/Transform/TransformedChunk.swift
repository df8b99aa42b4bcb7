package import BatchRuns
package import BatchIdentifiers

package struct TransformedChunk: Sendable {
  let transformed: TransformedRows<ReadKeys>
  let run: String
  /// The lane's ``ForeignCommitWatch/lookCount`` before the rows were read.
  let lookCount: Int
  /// The keys of the rows to change, and their numbers within the chunk.
  let keys: ChunkKeys
  let numbers: [Int]
  let values: ValueBlock

  init(_ transformed: TransformedRows<ReadKeys>, run: String, lookCount: Int) {
    self.transformed = transformed
    self.run = run
    self.lookCount = lookCount
    // Computed on the worker, so that the lane has less to do.
    let (rows, changed) = (transformed.rows, transformed.changed)
    let all = rows.keys.keys
    let isWhole = changed.count == all.identifierCount
    keys = isWhole && all.isRange ? all : rows.keys(ofRows: changed)
    numbers = isWhole ? rows.numbers : changed.map { rows.numbers[$0] }
    let values = transformed.changes.values
    self.values = isWhole ? values : values.selecting(changed)
  }

  var rows: ReadRows<ReadKeys> { transformed.rows }

  /// The number of its identifiers, which are the first of those requested.
  package var count: Int { transformed.count }

  package var byteCount: Int {
    rows.values.bytes.count + transformed.changes.values.bytes.count
  }

  /// The outcomes of a write now, in which changes count as succeeded.
  package var foreseen: (Outcomes, [BatchError]) {
    let failures = transformed.changes.failures
    var foreseen = transformed.passedOver.counts
    foreseen.succeeded = numbers.count
    foreseen.failed = failures.count
    return (foreseen, failures.map { $0.error.about(rows.key(of: $0.row)) })
  }

  func renewed(
    _ now: ReadRows<ReadKeys>,
    lookCount: Int,
    _ compute: TransformedRows<ReadKeys>.Computation
  ) throws(BatchError) -> TransformedChunk {
    TransformedChunk(try transformed.renewed(now, compute), run: run, lookCount: lookCount)
  }

  func part(_ number: Int) -> TransformedChunk {
    TransformedChunk(transformed.part(number), run: run, lookCount: lookCount)
  }
}
