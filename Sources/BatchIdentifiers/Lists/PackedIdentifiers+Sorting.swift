extension PackedIdentifiers {
  /// The identifiers in ascending order without duplicates; a sorted list is returned unchanged.
  ///
  /// Takes O(n log n) time, and memory of 8 bytes per integer key or the bytes of encoded keys.
  /// Keys at equal distances count as one.
  package func sortedUnique() throws(BatchError) -> PackedIdentifiers {
    if isSorted { return self }
    switch header.keyKind {
    case .integer: return try sortedIntegers().packed
    case .encoded: return try sortedEncodedKeys().packed
    }
  }

  private func sortedEncodedKeys() throws(BatchError) -> IdentifierList {
    var builder = emptyBuilder()
    let keys = try encodedKeys(in: 0..<count)
    let order = keys.indices.sorted { compareBytes(keys.span(at: $0), keys.span(at: $1)) < 0 }
    var last: Int?
    for index in order {
      let key = keys.span(at: index)
      if let last, compareBytes(keys.span(at: last), key) == 0 { continue }
      builder.append(encoded: key)
      last = index
    }
    return builder.finish()
  }

  // MARK: Integers

  /// A stretch of fewer keys is not worth keeping as one.
  private static var leastStretchCount: Int { 16 }

  private func sortedIntegers() throws(BatchError) -> IdentifierList {
    var keys: [Int64] = []
    var runs: [IntegerStretch] = []
    var lists: [IdentifierList] = []
    try forEachIntegerPart(of: 0..<count) { part in
      switch part {
      case .keys(let part): keys += part
      case .stretch(let stretch):
        let stretch = stretch.ascending
        if stretch.count < Self.leastStretchCount {
          keys += (0..<stretch.count).map { stretch[$0] }
        } else if stretch.step == 1 {
          runs.append(stretch)
        } else {
          lists.append(list(of: [stretch]))
        }
      }
    }
    lists.append(list(of: united(runs)))
    lists.append(list(ofUnsorted: &keys))
    var steps = 0
    // Lists are merged in pairs, so that each key is moved only a few times.
    while lists.count > 1 {
      var united: [IdentifierList] = []
      for index in stride(from: 0, to: lists.count - 1, by: 2) {
        united.append(try lists[index].packed.union(lists[index + 1].packed, steps: &steps))
      }
      if !lists.count.isMultiple(of: 2) { united.append(lists[lists.count - 1]) }
      lists = united
    }
    return lists[0]
  }

  private func united(_ runs: [IntegerStretch]) -> [IntegerStretch] {
    var united: [IntegerStretch] = []
    for var run in runs.sorted(by: { $0.first < $1.first }) {
      // The distance is less than the length of a run, so it cannot overflow.
      if let last = united.last?.last, run.first <= last {
        guard run.last > last else { continue }
        run = run[(Int(last - run.first) + 1)..<run.count]
      }
      united.append(run)
    }
    return united
  }

  private func list(of stretches: [IntegerStretch]) -> IdentifierList {
    var builder = emptyBuilder()
    for stretch in stretches { builder.append(stretch) }
    return builder.finish()
  }

  private func list(ofUnsorted keys: inout [Int64]) -> IdentifierList {
    keys.sort()
    var builder = emptyBuilder()
    var last: Int64?
    for key in keys where key != last {
      builder.append(key)
      last = key
    }
    return builder.finish()
  }
}
