import BatchIdentifiers

/// Positions of an identifier list, at a cost of at most one bit per identifier.
///
/// A set of ranges takes 16 bytes per range, which is 64 bits per identifier if every other
/// position is in the set. So ranges hold only the windows that are complete, and every other
/// window has a bit per position.
package struct PositionSet: Sendable {
  private static let windowCount = 1 << 16

  private var whole = RangeSet<Int>()
  /// The bits of the incomplete windows, by window number.
  private var parts: [Int: [UInt64]] = [:]

  package init() {}

  package init(_ ranges: some Sequence<Range<Int>>) {
    for range in ranges { insert(contentsOf: range) }
  }

  package var count: Int {
    parts.values.reduce(whole.indexCount * Self.windowCount) { sum, words in
      words.reduce(sum) { $0 + $1.nonzeroBitCount }
    }
  }

  package mutating func insert(contentsOf range: Range<Int>) { set(range, true) }

  package mutating func remove(contentsOf range: Range<Int>) { set(range, false) }

  package mutating func subtract(_ other: PositionSet) {
    for range in other.ranges { remove(contentsOf: range) }
  }

  private mutating func set(_ range: Range<Int>, _ isMember: Bool) {
    if range.isEmpty { return }
    let count = Self.windowCount
    let first = (range.lowerBound + count - 1) / count
    let end = range.upperBound / count
    // The range is within one window, or crosses from one into the next.
    guard first <= end else { return setBits(range, isMember) }
    if range.lowerBound < first * count { setBits(range.lowerBound..<first * count, isMember) }
    if end * count < range.upperBound { setBits(end * count..<range.upperBound, isMember) }
    if first == end { return }
    for window in parts.keys.filter({ (first..<end).contains($0) }) { parts[window] = nil }
    if isMember {
      whole.insert(contentsOf: first..<end)
    } else {
      whole.remove(contentsOf: first..<end)
    }
  }

  /// Sets bits within one window.
  private mutating func setBits(_ range: Range<Int>, _ isMember: Bool) {
    let window = range.lowerBound / Self.windowCount
    if parts[window] == nil {
      let isWhole = whole.contains(window)
      if isWhole == isMember { return }
      if isWhole { whole.remove(contentsOf: window..<window + 1) }
      parts[window] = [UInt64](repeating: isWhole ? .max : 0, count: Self.windowCount / 64)
    }
    let base = window * Self.windowCount
    for index in (range.lowerBound - base) / 64...(range.upperBound - 1 - base) / 64 {
      let word = base + index * 64
      let bits = range.clamped(to: word..<word + 64)
      let mask = (UInt64.max >> UInt64(64 - bits.count)) << UInt64(bits.lowerBound - word)
      if isMember { parts[window]?[index] |= mask } else { parts[window]?[index] &= ~mask }
    }
  }
}

// MARK: - Ranges

extension PositionSet {
  /// The positions as disjoint, ascending ranges, computed lazily.
  package var ranges: some Sequence<Range<Int>> { Ranges(self) }

  private struct Ranges: Sequence, IteratorProtocol {
    private let positions: PositionSet
    /// Adjacent complete windows are merged.
    private let windows: [Range<Int>]
    private var place = 0
    private var position = 0

    init(_ positions: PositionSet) {
      self.positions = positions
      let windows = positions.whole.ranges + positions.parts.keys.map { $0..<$0 + 1 }
      self.windows = windows.sorted { $0.lowerBound < $1.lowerBound }
    }

    mutating func next() -> Range<Int>? {
      guard var range = nextInWindow() else { return nil }
      // A range may continue in the next window.
      while range.upperBound.isMultiple(of: windowCount), place < windows.count,
        windows[place].lowerBound * windowCount == range.upperBound
      {
        let (place, position) = (place, position)
        guard let more = nextInWindow(), more.lowerBound == range.upperBound else {
          (self.place, self.position) = (place, position)
          break
        }
        range = range.lowerBound..<more.upperBound
      }
      return range
    }

    private mutating func nextInWindow() -> Range<Int>? {
      while place < windows.count {
        let window = windows[place]
        let end = window.upperBound * windowCount
        position = Swift.max(position, window.lowerBound * windowCount)
        if position < end {
          guard let words = positions.parts[window.lowerBound] else {
            let first = position
            position = end
            place += 1
            return first..<end
          }
          let first = Self.first(true, in: words, from: position % windowCount)
          let base = window.lowerBound * windowCount
          if first < windowCount {
            position = base + Self.first(false, in: words, from: first)
            if position == end { place += 1 }
            return base + first..<position
          }
        }
        place += 1
      }
      return nil
    }

    /// The first bit at or after `start` with the given value; the number of bits if there is none.
    private static func first(_ isSet: Bool, in words: [UInt64], from start: Int) -> Int {
      var mask = UInt64.max << UInt64(start % 64)
      for index in start / 64..<words.count {
        let found = (isSet ? words[index] : ~words[index]) & mask
        if found != 0 { return index * 64 + found.trailingZeroBitCount }
        mask = .max
      }
      return windowCount
    }
  }
}
