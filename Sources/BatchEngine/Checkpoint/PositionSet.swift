import BatchIdentifiers

/// Positions of an identifier list: at most a bit for each identifier, however scattered they are.
///
/// A set of ranges takes 16 bytes for each, which for every other position is 64 bits an identifier. So it
/// is kept of whole windows of positions only, and of each other window a bit for every position.
package struct PositionSet: Sendable {
  /// How many positions a window has.
  private static let windowCount = 1 << 16

  /// The numbers of windows with all of their positions.
  private var whole = RangeSet<Int>()
  /// The bits of other windows, by their numbers.
  private var parts: [Int: [UInt64]] = [:]

  /// No positions at all.
  package init() {}

  /// The positions of some ranges.
  package init(_ ranges: some Sequence<Range<Int>>) {
    for range in ranges { insert(contentsOf: range) }
  }

  /// How many positions there are.
  package var count: Int {
    parts.values.reduce(whole.indexCount * Self.windowCount) { sum, words in
      words.reduce(sum) { $0 + $1.nonzeroBitCount }
    }
  }

  /// Adds positions.
  package mutating func insert(contentsOf range: Range<Int>) { set(range, true) }

  /// Takes positions away.
  package mutating func remove(contentsOf range: Range<Int>) { set(range, false) }

  /// Takes those of another set away.
  package mutating func subtract(_ other: PositionSet) {
    for range in other.ranges { remove(contentsOf: range) }
  }

  private mutating func set(_ range: Range<Int>, _ isMember: Bool) {
    if range.isEmpty { return }
    let count = Self.windowCount
    let first = (range.lowerBound + count - 1) / count
    let end = range.upperBound / count
    // Within a window, or at its end and at the beginning of another one.
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

  /// Sets the bits of positions of one window.
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
  /// The positions as ranges, ascending and apart, each found when it is asked for.
  package var ranges: some Sequence<Range<Int>> { Ranges(self) }

  private struct Ranges: Sequence, IteratorProtocol {
    private let positions: PositionSet
    /// The windows, neighbouring whole ones together.
    private let windows: [Range<Int>]
    private var place = 0
    /// What is looked at next.
    private var position = 0

    init(_ positions: PositionSet) {
      self.positions = positions
      let windows = positions.whole.ranges + positions.parts.keys.map { $0..<$0 + 1 }
      self.windows = windows.sorted { $0.lowerBound < $1.lowerBound }
    }

    mutating func next() -> Range<Int>? {
      guard var range = nextInWindow() else { return nil }
      // A range may go on in the next window.
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

    /// The first bit from one on that is set, or is not; as many as there are if there is none.
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
