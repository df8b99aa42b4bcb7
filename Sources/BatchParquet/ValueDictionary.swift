/// The different values of a list, in the order in which they first occur.
struct ValueDictionary<List: ValueList & ~Copyable>: ~Copyable {
  /// Larger pages of entries would take readers too much memory.
  private static var byteLimit: Int { 4 << 20 }

  private(set) var entries = List()
  /// For each value the index of its entry.
  private(set) var indices = Store<UInt32>()
  /// Whether it has all values; it was given up if so many are different that it cannot pay.
  private(set) var isComplete = true

  init(_ list: borrowing List, _ type: ParquetType) {
    let count = list.count
    indices.reserve(count)
    var table = IndexTable()
    for position in 0..<count {
      let index = table.index(list.hash(position)) { list.isSame(position, as: $0, of: entries) }
      if index == entries.count {
        entries.append(position, of: list)
        let isHopeless =
          entries.count > count / 2 || (position >= 16_384 && entries.count * 8 > position * 7)
        if isHopeless || entries.plainCount(type) > Self.byteLimit {
          isComplete = false
          return
        }
      }
      indices.append(UInt32(truncatingIfNeeded: index))
    }
  }

  var indexWidth: Int { Bits.width(below: entries.count) }

  /// The size of its page and of all indices.
  func byteCount(_ type: ParquetType) -> Int {
    entries.plainCount(type) + indices.count * indexWidth / 8
  }
}
