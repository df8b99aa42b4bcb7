/// The keys that were last asked for one by one.
///
/// A look-up by position decodes a whole segment; its neighbours are then here.
final class SegmentCache: Sendable {
  /// Some decoded integers and the position of the first of them.
  struct Window: Sendable {
    var start: Int
    var integers: [Int64]

    func integer(at position: Int) -> Int64? {
      let index = position - start
      return integers.indices.contains(index) ? integers[index] : nil
    }
  }

  /// A few windows, so that tasks that walk over different parts do not evict each other's.
  private static let slotCount = 8
  private let windows = Lock([Window](repeating: Window(start: 0, integers: []), count: slotCount))

  private static func slot(of position: Int) -> Int {
    (position / SegmentCoding.plainCount) % slotCount
  }

  func integer(at position: Int) -> Int64? {
    windows.withLock { windows in windows[Self.slot(of: position)].integer(at: position) }
  }

  /// Keeps a window for look-ups near `position`.
  func store(_ window: Window, near position: Int) {
    windows.withLock { windows in windows[Self.slot(of: position)] = window }
  }
}
