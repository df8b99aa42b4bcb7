package import BatchIdentifiers

package final class SelectedRows: Sendable {
  /// The keys, sorted if they are integers.
  private let list: PackedIdentifiers
  private let hasIntegers: Bool
  /// Sorted hashes of the keys if they are not integers.
  ///
  /// Rows do not come in key order here, and a packed list decodes a block for each look-up. Two of
  /// a million keys have the same hash in one of 30 million lists.
  private let hashes: [UInt64]
  /// A bit for each position, set if it has a copy.
  private let marks: Lock<[UInt64]>

  /// - Complexity: O(*n* log *n*) time if the list is not sorted. Keeps the packed list, and 8
  ///   bytes per key if keys are not integers.
  package init(_ list: PackedIdentifiers) throws(BatchError) {
    marks = Lock([UInt64](repeating: 0, count: list.count / 64 + 1))
    hasIntegers = list.header.keyKind == .integer
    guard !hasIntegers else {
      self.list = try list.sortedUnique()
      hashes = []
      return
    }
    self.list = list
    var hashes: [UInt64] = []
    hashes.reserveCapacity(list.count)
    for first in stride(from: 0, to: list.count, by: Self.partCount) {
      let keys = try list.encodedKeys(in: first..<min(first + Self.partCount, list.count))
      for index in keys.indices { hashes.append(XXHash64.hash(keys[index].bytes)) }
    }
    hashes.sort()
    self.hashes = hashes
  }

  private static let partCount = 10_000

  /// The index of an integer key; nil if it was not selected.
  func position(of key: Int64) -> Int? {
    guard hasIntegers else {
      var encoder = EncodedKey.Encoder()
      encoder.append(key)
      return position(of: encoder)
    }
    // The list is in memory and was checked. An unreadable key would be reported as a difference.
    return (try? list.firstPosition(of: .integer(key))) ?? nil
  }

  /// The index of a key; nil if it was not selected.
  func position(of key: EncodedKey.Encoder) -> Int? {
    if hasIntegers { return (try? list.firstPosition(of: .encoded(key.key))) ?? nil }
    let hash = XXHash64.hash(key.bytes)
    let position = hashes.partitioningIndex { $0 >= hash }
    return position < hashes.count && hashes[position] == hash ? position : nil
  }

  /// Marks a position; false if it was already marked.
  func mark(_ position: Int) -> Bool {
    marks.withLock { marks in
      let bit: UInt64 = 1 << UInt64(position % 64)
      defer { marks[position / 64] |= bit }
      return marks[position / 64] & bit == 0
    }
  }

  func isMarked(_ position: Int) -> Bool {
    marks.withLock { $0[position / 64] & 1 << UInt64(position % 64) != 0 }
  }
}
