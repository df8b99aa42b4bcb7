extension PackedIdentifiers {
  /// The identifiers in the same order, each only at its first position.
  ///
  /// A list without repetitions costs as much as ``sortedUnique()``; for others, this takes O(n log
  /// n) time and memory for all keys. Throws `.tooManyKeys` if a list of billions has repetitions.
  package func distinct() throws(BatchError) -> PackedIdentifiers {
    if isSorted { return self }
    let unique = try sortedUnique().count
    if unique == count { return self }
    guard count <= Self.maximumSiftedCount else {
      throw BatchError(
        .tooManyKeys,
        "\((count - unique).grouped) of \(count.grouped) identifiers are repeats",
        at: header.entityName,
        remedy: "leave them out: batch ids union FILE --output NEW, which sorts the list"
      )
    }
    var builder = emptyBuilder()
    switch header.keyKind {
    case .integer:
      let keys = try integers(in: 0..<count)
      var seen: Set<Int64> = []
      seen.reserveCapacity(unique)
      for key in keys where seen.insert(key).inserted { builder.append(key) }
    case .encoded:
      let keys = try encodedKeys(in: 0..<count)
      for index in firsts(of: keys) { builder.append(encoded: keys.span(at: index)) }
    }
    return builder.finish().packed
  }

  /// Forged files can have any number of keys, and their positions take memory.
  private static var maximumSiftedCount: Int { 1 << 28 }

  /// The indexes of keys that do not occur before, ascending.
  private func firsts(of keys: EncodedKeys) -> [Int] {
    let order = keys.indices.sorted {
      let comparison = compareBytes(keys.span(at: $0), keys.span(at: $1))
      return comparison == 0 ? $0 < $1 : comparison < 0
    }
    var firsts: [Int] = []
    for (place, index) in order.enumerated() {
      if place > 0, compareBytes(keys.span(at: order[place - 1]), keys.span(at: index)) == 0 {
        continue
      }
      firsts.append(index)
    }
    return firsts.sorted()
  }
}
