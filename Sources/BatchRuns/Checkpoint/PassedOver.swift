package import BatchIdentifiers

/// The positions of identifiers that are done but were neither changed nor failed.
///
/// Together with the done ranges and the failed identifiers, they determine the outcome of each
/// identifier: all others have succeeded. So a chunk without such rows needs no entry.
package struct PassedOver: Hashable, Sendable {
  /// The action had nothing to do.
  package var unchanged = RangeSet<Int>()
  package var vanished = RangeSet<Int>()
  /// The row no longer satisfied `where`.
  package var noLongerMatching = RangeSet<Int>()

  package init() {}

  package var isEmpty: Bool {
    unchanged.isEmpty && vanished.isEmpty && noLongerMatching.isEmpty
  }

  func contains(_ number: Int) -> Bool {
    unchanged.contains(number) || vanished.contains(number) || noLongerMatching.contains(number)
  }

  package var first: Int? {
    Self.kinds.compactMap { self[keyPath: $0].ranges.first?.lowerBound }.min()
  }

  package var counts: Outcomes {
    var counts = Outcomes()
    counts.unchanged = unchanged.indexCount
    counts.vanished = vanished.indexCount
    counts.noLongerMatching = noLongerMatching.indexCount
    return counts
  }

  package mutating func formUnion(_ other: PassedOver, at position: (Int) -> Int) {
    for kind in Self.kinds {
      for number in other[keyPath: kind].ranges.joined() {
        self[keyPath: kind].insert(position(number))
      }
    }
  }

  package mutating func formUnion(_ other: PassedOver, from offset: Int = 0) {
    for kind in Self.kinds {
      for range in other[keyPath: kind].ranges {
        self[keyPath: kind].insert(
          contentsOf: (range.lowerBound + offset)..<(range.upperBound + offset)
        )
      }
    }
  }

  /// Those of some numbers, counted from the first of them.
  package func part(_ numbers: Range<Int>) -> PassedOver {
    var part = PassedOver()
    for kind in Self.kinds {
      for range in self[keyPath: kind].ranges where range.overlaps(numbers) {
        let (range, first) = (range.clamped(to: numbers), numbers.lowerBound)
        part[keyPath: kind].insert(
          contentsOf: (range.lowerBound - first)..<(range.upperBound - first)
        )
      }
    }
    return part
  }

  /// The kinds, in the order of their numbers in the packed form.
  private static var kinds: [WritableKeyPath<PassedOver, RangeSet<Int>>] {
    [\.unchanged, \.vanished, \.noLongerMatching]
  }
}

// MARK: - The packed form

extension PassedOver {
  /// The positions in a compact form, relative to `first`, which must not exceed any of them.
  ///
  /// It has the number of each kind with positions, and the positions in the shorter of two
  /// encodings.
  package func packed(from first: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for (number, kind) in Self.kinds.enumerated() {
      let set = self[keyPath: kind]
      guard let last = set.ranges.last?.upperBound else { continue }
      let runs = set.packedRuns(from: first)
      let bitmapByteCount = (last - first + 7) / 8
      let isBitmap = bitmapByteCount < runs.count
      bytes.append(UInt8(number << 1 | (isBitmap ? 1 : 0)))
      bytes.appendVarint(UInt64(isBitmap ? bitmapByteCount : runs.count))
      bytes += isBitmap ? set.bitmap(from: first, byteCount: bitmapByteCount) : runs
    }
    return bytes
  }

  /// Adds positions packed by ``packed(from:)``.
  package mutating func unpack(
    _ bytes: Span<UInt8>,
    from first: Int
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(bytes)
    while !reader.isAtEnd {
      let head = try reader.byte()
      guard head >> 1 < Self.kinds.count, first >= 0, first <= IdentifierList.maximumCount else {
        throw ByteReader.Damage("a kind or a position is out of bounds")
      }
      let kind = Self.kinds[Int(head >> 1)]
      let part = try reader.take(reader.count(atMost: reader.remaining))
      if head & 1 == 1 {
        self[keyPath: kind].insert(bitmap: part, from: first)
      } else {
        try self[keyPath: kind].insert(runs: part, from: first)
      }
    }
  }
}

extension RangeSet<Int> {
  package var indexCount: Int { ranges.reduce(0) { $0 + $1.count } }

  package mutating func insert(_ position: Int) {
    insert(contentsOf: position..<(position + 1))
  }

  /// Encodes for each range its distance from the end of the previous one and its length minus one.
  fileprivate func packedRuns(from first: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var end = first
    for range in ranges {
      bytes.appendVarint(UInt64(range.lowerBound - end))
      bytes.appendVarint(UInt64(range.count - 1))
      end = range.upperBound
    }
    return bytes
  }

  fileprivate mutating func insert(
    runs: Span<UInt8>,
    from first: Int
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(runs)
    var end = first
    while !reader.isAtEnd {
      let start = try end + reader.count(atMost: IdentifierList.maximumCount - end)
      guard start < IdentifierList.maximumCount else {
        throw ByteReader.Damage("a position is out of bounds")
      }
      end = try start + 1 + reader.count(atMost: IdentifierList.maximumCount - start - 1)
      insert(contentsOf: start..<end)
    }
  }

  fileprivate func bitmap(from first: Int, byteCount: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    for position in ranges.joined() {
      bytes[(position - first) >> 3] |= 1 << UInt8((position - first) & 7)
    }
    return bytes
  }

  fileprivate mutating func insert(bitmap: Span<UInt8>, from first: Int) {
    for index in bitmap.indices where bitmap[index] != 0 {
      for bit in 0..<8 where bitmap[index] >> UInt8(bit) & 1 == 1 {
        insert(first + index << 3 + bit)
      }
    }
  }
}
