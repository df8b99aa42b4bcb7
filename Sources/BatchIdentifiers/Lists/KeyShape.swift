/// Facts about some keys that are quick to find out.
struct KeyShape {
  var isAscending = true
  var isDescending = true
  /// The step, if all steps are equal.
  var step: Int64?
  /// The number of runs of consecutive keys, ascending or descending.
  var runCount = 1
  /// The number of leading keys in order, ascending or descending.
  var orderedCount: Int

  /// Examines at least one key, and stores the steps between keys minus one.
  ///
  /// - Parameters:
  ///   - keys: The keys to examine.
  ///   - steps: Room for one number less than there are keys; filled if the keys ascend or descend.
  init(_ keys: Span<Int64>, steps: inout MutableSpan<UInt64>) {
    orderedCount = keys.count
    guard keys.count > 1 else {
      isDescending = false
      return
    }
    // Most lists ascend in small steps: one loop without branches detects this.
    if note(keys, isDescending: false, &steps) {
      isDescending = false
    } else if note(keys, isDescending: true, &steps) {
      isAscending = false
    } else {
      look(keys)
      if isAscending || isDescending {
        let sign: Int64 = isAscending ? 1 : -1
        for index in 0..<(keys.count - 1) {
          steps[index] = UInt64(bitPattern: (keys[index + 1] &- keys[index]) &* sign) &- 1
        }
      }
    }
  }

  /// Stores the steps, and returns true if all have one direction and are below 2⁵⁰, so that none
  /// can have wrapped around.
  private mutating func note(
    _ keys: Span<Int64>,
    isDescending: Bool,
    _ steps: inout MutableSpan<UInt64>
  ) -> Bool {
    precondition(steps.count >= keys.count)
    let count = keys.count - 1
    // Negates descending steps with two cheap operations: a multiplication took most of the time.
    let flip: Int64 = isDescending ? -1 : 0
    let first = UInt64(bitPattern: (keys[1] &- keys[0]) ^ flip &- flip) &- 1
    var all: UInt64 = 0
    var differing: UInt64 = 0
    var adjacent: UInt64 = 0
    for index in 1..<keys.count {
      let step = UInt64(bitPattern: (keys[index] &- keys[index - 1]) ^ flip &- flip) &- 1
      steps[index - 1] = step
      all |= step
      differing |= step ^ first
      // Below 2⁵⁰, the highest bit of this is set only for zero.
      adjacent = adjacent &+ ((step &- 1) &>> 63)
    }
    guard all < 1 << 50, isDescending ? keys[count] < keys[0] : keys[count] > keys[0] else {
      return false
    }
    runCount = count - Int(truncatingIfNeeded: adjacent) + 1
    if differing == 0 { step = keys[1] &- keys[0] }
    return true
  }

  private mutating func look(_ keys: Span<Int64>) {
    let first = keys[1] &- keys[0]
    var isEven = true
    for index in 1..<keys.count {
      isAscending = isAscending && keys[index] > keys[index - 1]
      isDescending = isDescending && keys[index] < keys[index - 1]
      isEven = isEven && keys[index] &- keys[index - 1] == first
      let isAdjacent = (keys[index] &- keys[index - 1]).magnitude == 1
      runCount += isAdjacent ? 0 : 1
    }
    if isEven { step = first }
    if !isAscending, !isDescending { orderedCount = Self.orderedCount(keys) }
  }

  private static func orderedCount(_ keys: Span<Int64>) -> Int {
    let isUp = keys[1] > keys[0]
    var count = 1
    while count < keys.count, keys[count] != keys[count - 1],
      (keys[count] > keys[count - 1]) == isUp
    {
      count += 1
    }
    return count
  }
}
