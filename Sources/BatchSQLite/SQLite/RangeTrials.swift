/// Decides whether to try the next chunk in one statement, where that may be in vain.
///
/// A range of keys with many other rows between them takes longer than a statement for each, and if
/// not all of its rows change, it is done again. Neighbouring chunks are mostly alike.
struct RangeTrials {
  /// How many chunks at most do without before the next try.
  private static let longestPause = 64

  private var pause = 0
  private var nextPause = 1

  /// Whether the next chunk is worth a try.
  mutating func isWorthATry() -> Bool {
    if pause > 0 {
      pause -= 1
      return false
    }
    return true
  }

  /// Notes how a try has ended.
  mutating func note(_ succeeded: Bool) {
    if succeeded {
      nextPause = 1
    } else {
      pause = nextPause
      nextPause = min(nextPause * 2, Self.longestPause)
    }
  }
}
