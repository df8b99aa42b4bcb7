#if PostgreSQL
import BatchEngine
package import BatchIdentifiers

/// A chunk that was read and computed, ready to be written.
package struct TransformedRows: Sendable {
  /// The rows as they were read.
  package let rows: ReadRows
  private let computed: ComputedRows
  /// The rows that get values.
  let changed: [Int]
  /// The identifiers passed over, by their numbers.
  let passedOver: PassedOver

  init(_ rows: ReadRows, _ computed: ComputedRows) {
    self.rows = rows
    self.computed = computed
    let lost = Set((computed.failures + computed.postponed).map(\.row))
    changed = (0..<rows.count).filter { computed.values.isSet($0) && !lost.contains($0) }
    var passedOver = rows.passedOver
    if changed.count + lost.count < rows.count {
      let kept = Set(changed)
      for row in 0..<rows.count where !kept.contains(row) && !lost.contains(row) {
        passedOver.unchanged.insert(rows.numbers[row])
      }
    }
    self.passedOver = passedOver
  }

  /// The number of its identifiers, which are the first of those requested.
  package var count: Int { rows.keys.count }

  /// The approximate number of bytes that it holds.
  package var byteCount: Int { rows.values.byteCount + computed.values.byteCount }

  /// The values of a row's written columns.
  var values: RowValues { computed.values }

  /// The identifiers whose rows could not be computed, by their numbers, ascending.
  var failures: [(number: Int, error: BatchError)] {
    computed.failures.map { (rows.numbers[$0.row], $0.error) }
  }

  /// Why some of its rows are postponed; nil if none is.
  package var postponement: BatchError? {
    guard let first = computed.postponed.first else { return nil }
    var error = first.error.about(rows.key(of: first.row))
    let others = computed.postponed.count - 1
    if others > 0 { error.message += " (and \(others.grouped) more)" }
    return error
  }

  /// The chunk with a failure of each row that is not among others of the same chunk.
  func failing(rowsOtherThan others: ReadRows, with error: BatchError) -> TransformedRows {
    let found = Set(others.numbers)
    let lost = (0..<rows.count).filter { !found.contains(rows.numbers[$0]) }
    var computed = computed
    computed.failures.removeAll { lost.contains($0.row) }
    computed.failures += lost.map { ($0, error.about(rows.key(of: $0))) }
    computed.failures.sort { $0.row < $1.row }
    computed.postponed.removeAll { lost.contains($0.row) }
    return TransformedRows(rows, computed)
  }

  /// The chunk with its rows as they are now: computes those that have changed or were postponed.
  func renewed(
    _ now: ReadRows,
    _ compute: RowComputation
  ) throws(BatchError) -> TransformedRows {
    let postponed = Set(computed.postponed.map(\.row))
    var now = now
    var places = now.places(in: rows).map { $0.flatMap { postponed.contains($0) ? nil : $0 } }
    var others = places.indices.filter { places[$0] == nil }
    var new = ComputedRows(RowValues(columns: values.columnCount))
    if !others.isEmpty { new = try compute(now.selecting(others)) }
    if new.values.count < others.count {
      // Only as many rows as were computed.
      now = now.prefix(others[new.values.count])
      places.removeSubrange(now.count...)
      others.removeSubrange(new.values.count...)
    }
    var renewed = ComputedRows(RowValues(columns: values.columnCount))
    let failed = Dictionary(uniqueKeysWithValues: computed.failures.map { ($0.row, $0.error) })
    var next = 0
    for (row, place) in places.enumerated() {
      if let place {
        try renewed.values.append(row: place, of: values)
        if let error = failed[place] { renewed.failures.append((row, error)) }
      } else {
        try renewed.values.append(row: next, of: new.values)
        next += 1
      }
    }
    renewed.failures += new.failures.map { (others[$0.row], $0.error) }
    renewed.failures.sort { $0.row < $1.row }
    renewed.postponed = new.postponed.map { (others[$0.row], $0.error) }
    return TransformedRows(now, renewed)
  }
}
#endif
