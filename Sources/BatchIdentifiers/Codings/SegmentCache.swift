/// The keys that were last asked for one by one.
///
/// A look-up by position decodes a whole segment; its neighbours are then here.
final class SegmentCache: Sendable {
  /// Some decoded integers and the position of the first of them.
  struct Window: Sendable {
    var start: Int
    var integers: [Int64]

    init(start: Int, integers: [Int64]) {
      self.start = start
      self.integers = integers
    }

    /// The part of a segment around an index in it, or nil if the segment has no such index.
    ///
    /// `start` is a position in the segment.
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

    /// The part around an index of a segment whose keys are all there, or nil if it has no such index.
    ///
    /// `start` is a position in the segment.
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

  /// The most keys of one window.
  static let windowCount = 512

  /// A few windows, so that tasks that walk over different parts do not evict each other's.
  private static let slotCount = 8
  private let windows = Lock([Window](repeating: Window(start: 0, integers: []), count: slotCount))

  /// The most bytes that are kept of keys that are no integers: a segment, with the key that fills it.
  private static let encodedByteLimit = FrontCoding.segmentByteCount * 2
  /// The keys that were last decoded for one of them, and the position of the first.
  private let encoded = Lock<(start: Int, keys: EncodedKeys)>((0, EncodedKeys()))

  private static func slot(of position: Int) -> Int {
    (position / windowCount) % slotCount
  }

  func integer(at position: Int) -> Int64? {
    windows.withLock { windows in windows[Self.slot(of: position)].integer(at: position) }
  }

  /// The position of the first integer not below `value`, if a window inside `range` shows it.
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

  /// Keeps the decoded keys of a segment, unless they are large, for look-ups of their neighbours.
  func store(_ keys: EncodedKeys, from start: Int) {
    guard keys.bytes.count <= Self.encodedByteLimit else { return }
    encoded.withLock { $0 = (start, keys) }
  }

  /// Keeps a window for look-ups near `position`.
  func store(_ window: Window, near position: Int) {
    windows.withLock { windows in windows[Self.slot(of: position)] = window }
  }
}
