extension PackedIdentifiers {
  /// Whether another list has the same rows in the same order, found in linear time.
  package func hasSameKeys(as other: PackedIdentifiers) throws(BatchError) -> Bool {
    guard count == other.count, header.entityName == other.header.entityName,
      header.storeIdentifier == other.header.storeIdentifier,
      header.keyKind == other.header.keyKind
    else { return false }
    for start in stride(from: 0, to: count, by: 65_536) {
      let range = start..<Swift.min(start + 65_536, count)
      switch header.keyKind {
      case .integer:
        guard try integers(in: range) == other.integers(in: range) else { return false }
      case .encoded:
        let (mine, others) = (try encodedKeys(in: range), try other.encodedKeys(in: range))
        guard mine.elementsEqual(others) else { return false }
      }
    }
    return true
  }

  package func contains(key: PrimaryKey) throws(BatchError) -> Bool {
    try firstPosition(of: key) != nil
  }

  /// Which of some keys a sorted list has, in their order.
  ///
  /// They are looked up in ascending order, so that a block is decoded once for all of its keys.
  package func contains(_ keys: [PrimaryKey]) throws(BatchError) -> [Bool] {
    var found = [Bool](repeating: false, count: keys.count)
    for index in keys.indices.sorted(by: { keys[$0] < keys[$1] }) {
      found[index] = try contains(key: keys[index])
    }
    return found
  }

  /// Takes O(log n) time and one segment if the list is sorted, and O(n) time if it is not.
  package func firstPosition(of key: PrimaryKey) throws(BatchError) -> Int? {
    guard isSorted else { return try scan(for: key) }
    let position = try lowerBound(of: key)
    guard position < count, try self.key(at: position).canonical == key.canonical else {
      return nil
    }
    return position
  }

  /// The first position in a sorted list whose key is not below `key`; ``count`` if there is none.
  func lowerBound(of key: PrimaryKey) throws(BatchError) -> Int {
    switch (header.keyKind, key.canonical) {
    case (.integer, .integer(let value)): try lowerBound(of: value)
    case (.integer, .encoded): count
    case (.encoded, .integer(let value)): try lowerBound(of: EncodedKey([.integer(value)]))
    case (.encoded, .encoded(let key)): try lowerBound(of: key)
    }
  }

  private func lowerBound(of value: Int64) throws(BatchError) -> Int {
    // The last block that begins at or below the value; if the list has the key, it is in this
    // block.
    let next = directory.firstKeys.partitioningIndex { $0 > value }
    guard next > 0 else { return 0 }
    let block = next - 1
    let start = directory.positions[block]
    let end = directory.positions[next]
    if let position = cache.position(of: value, in: start..<end) { return position }
    var scratch: [UInt8] = []
    return try withBlock(block, scratch: &scratch) { bytes, segments throws(ByteReader.Damage) in
      let following = segments.partitioningIndex { $0.firstKey > value }
      guard following > 0 else { return start }
      let before = segments[..<(following - 1)].reduce(0) { $0 + $1.count }
      let segment = segments[following - 1]
      let (index, window) = try IntegerDecoder.window(at: value, in: segment, of: bytes)
      if var window {
        // Callers often ask for neighbours next, or for this key by its position.
        window.start += start + before
        cache.store(window, near: start + before + index)
      }
      return start + before + index
    }
  }

  private func lowerBound(of key: EncodedKey) throws(BatchError) -> Int {
    let wanted = key.bytes.span
    let separators = directory.separators
    // The last block that begins at or below the key; if the list has the key, it is in this block.
    let next = separators.indices.partitioningIndex {
      compareBytes(separators.span(at: $0), wanted) > 0
    }
    guard next > 0 else { return 0 }
    let start = directory.positions[next - 1]
    let keys = try block(at: start..<directory.positions[next])
    return start
      + keys.indices.partitioningIndex { compareBytes(keys.span(at: $0), wanted) >= 0 }
  }

  /// The keys of a block, in which neighbours are looked up next.
  private func block(at positions: Range<Int>) throws(BatchError) -> EncodedKeys {
    if let keys = cache.block(at: positions.lowerBound) { return keys }
    let keys = try encodedKeys(in: positions)
    cache.store(block: keys, from: positions.lowerBound)
    return keys
  }

  private func scan(for key: PrimaryKey) throws(BatchError) -> Int? {
    let wanted = key.canonical
    var position = 0
    while position < count {
      let end = Swift.min(position + SegmentCoding.plainCount * 4, count)
      switch (header.keyKind, wanted) {
      case (.integer, .integer(let value)):
        if let index = try integers(in: position..<end).firstIndex(of: value) {
          return position + index
        }
      case (.integer, .encoded):
        return nil
      case (.encoded, _):
        let encoded = EncodedKey(wanted.components)
        if let index = try encodedKeys(in: position..<end).firstIndex(of: encoded) {
          return position + index
        }
      }
      position = end
    }
    return nil
  }
}
