/// Decides whether to try one statement for the next chunk, which may not pay off.
///
/// A range of keys with many other rows between them takes longer than a statement for each key. If
/// not all of its rows change, the work is repeated. Neighbouring chunks are mostly alike.
struct RangeTrials {
  /// The most chunks to skip before the next attempt.
  private static let longestPause = 64

  private var pause = 0
  private var nextPause = 1

  mutating func isWorthATry() -> Bool {
    if pause > 0 {
      pause -= 1
      return false
    }
    return true
  }

  mutating func note(_ succeeded: Bool) {
    if succeeded {
      nextPause = 1
    } else {
      pause = nextPause
      nextPause = min(nextPause * 2, Self.longestPause)
    }
  }
}
