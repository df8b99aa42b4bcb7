import BatchRuns
package import BatchIdentifiers

package struct ReadKeys: ChunkKeyList {
  let keys: ChunkKeys
  /// Whether the rows were found by a range of keys.
  var isRangeOfKeys = false

  init(_ keys: ChunkKeys) {
    self.keys = keys
  }

  package var count: Int { keys.identifierCount }

  package func key(at number: Int) -> PrimaryKey { keys.key(at: number) }

  package func part(_ numbers: Range<Int>) -> ReadKeys {
    var part = ReadKeys(keys.part(numbers))
    part.isRangeOfKeys = isRangeOfKeys
    return part
  }

  package var lookup: @Sendable (_ number: Int) -> PrimaryKey {
    // One by one, since finding a key in a range takes counting.
    let keys = keys.singly
    return { keys.key(at: $0) }
  }
}

extension ReadRows<ReadKeys> {
  /// The keys of some of the rows, in the form that suits a statement.
  func keys(ofRows rows: [Int]) -> ChunkKeys {
    let rowIDs = marks.isEmpty ? nil : rows.map { marks[$0] }
    if let rowIDs, keys.keys.isRange { return .rowIDs(rowIDs) }
    let selected = keys.keys.selecting(rows.map { numbers[$0] })
    if keys.isRangeOfKeys, selected.identifierCount > 1 {
      return .located(LocatedKeys(range: selected))
    }
    return rowIDs.map { .located(LocatedKeys(selected, rowIDs: $0)) } ?? selected
  }
}
