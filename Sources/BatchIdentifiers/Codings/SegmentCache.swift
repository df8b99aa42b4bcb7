/// The keys around the last look-ups.
///
/// A look-up by position decodes a whole segment, and keeps neighbours of the key here.
final class SegmentCache: Sendable {
  struct Window: Sendable {
    var start: Int
    var integers: [Int64]

    init(start: Int, integers: [Int64]) {
      self.start = start
      self.integers = integers
    }

    /// The part of a segment around an index, or nil if the segment has no such index; `start` is
    /// relative to the segment.
    init?(
      around index: Int,
      of segment: Segment,
      decode: (Range<Int>, KeyOutput) throws(ByteReader.Damage) -> Void
    ) throws(ByteReader.Damage) {
      guard index < segment.count else { return nil }
      let low = index / windowCount * windowCount
      let high = min(segment.count, low + windowCount)
      start = low
      integers = [Int64](repeating: 0, count: high - low)
      var span = integers.mutableSpan
      try decode(low..<high, KeyOutput(&span, from: 0, count: high - low))
    }

    /// The part of a decoded segment around an index, or nil if there is no such index; `start` is
    /// relative to the segment.
    init?(around index: Int, of keys: [Int64]) {
      guard index < keys.count else { return nil }
      start = index / windowCount * windowCount
      integers = Array(keys[start..<min(keys.count, start + windowCount)])
    }

    func integer(at position: Int) -> Int64? {
      let index = position - start
      return integers.indices.contains(index) ? integers[index] : nil
    }
  }

  static let windowCount = 512

  /// There are several, so that tasks that read different parts do not evict each other's windows.
  private static let slotCount = 8
  private let windows = Lock([Window](repeating: Window(start: 0, integers: []), count: slotCount))

  /// The maximum size of cached encoded keys in bytes: a segment with the key that fills it.
  private static let encodedByteLimit = FrontCoding.segmentByteCount * 2
  /// The last decoded encoded keys, and the position of the first one.
  private let encoded = Lock<(start: Int, keys: EncodedKeys)>((0, EncodedKeys()))

  /// The maximum size of a cached block of encoded keys in bytes.
  private static let blockByteLimit = 4 << 20
  /// The last block in which a key was looked up, and the position of its first key.
  private let block = Lock<(start: Int, keys: EncodedKeys)>((-1, EncodedKeys()))

  private static func slot(of position: Int) -> Int {
    (position / windowCount) % slotCount
  }

  func integer(at position: Int) -> Int64? {
    windows.withLock { windows in windows[Self.slot(of: position)].integer(at: position) }
  }

  /// The position of the first integer not below `value`, if a cached window within `range`
  /// contains it.
  ///
  /// Only for sorted lists.
  func position(of value: Int64, in range: Range<Int>) -> Int? {
    windows.withLock { windows in
      for window in windows {
        guard range.contains(window.start), let first = window.integers.first,
          let last = window.integers.last, first <= value, value <= last
        else { continue }
        return window.start + window.integers.partitioningIndex { $0 >= value }
      }
      return nil
    }
  }

  func encodedKey(at position: Int) -> EncodedKey? {
    encoded.withLock { encoded in
      let index = position - encoded.start
      return encoded.keys.indices.contains(index) ? encoded.keys[index] : nil
    }
  }

  /// The keys of the block that begins at a position, if they are cached.
  func block(at start: Int) -> EncodedKeys? {
    block.withLock { $0.start == start ? $0.keys : nil }
  }

  /// Keeps the decoded keys of a block for look-ups of other keys, unless they are large.
  func store(block keys: EncodedKeys, from start: Int) {
    guard keys.bytes.count <= Self.blockByteLimit else { return }
    block.withLock { $0 = (start, keys) }
  }

  /// Keeps the decoded keys of a segment for look-ups of their neighbours, unless they are large.
  func store(_ keys: EncodedKeys, from start: Int) {
    guard keys.bytes.count <= Self.encodedByteLimit else { return }
    encoded.withLock { $0 = (start, keys) }
  }

  func store(_ window: Window, near position: Int) {
    windows.withLock { windows in windows[Self.slot(of: position)] = window }
  }
}
