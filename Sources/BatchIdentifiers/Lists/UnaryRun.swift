/// Collects the steps of ordered keys that suit a plain bitmap, over several segments.
///
/// If every second number is a key, nothing is shorter than a bit per number, and the overhead of a
/// segment matters.
struct UnaryRun: Sendable {
  /// A longer step costs more than another segment.
  private static let maximumStep: UInt64 = 32

  private var steps: [UInt64] = []
  private(set) var count = 0
  private(set) var firstKey: Int64 = 0
  private var lastKey: Int64 = 0
  private(set) var isComplemented = false

  /// Whether more keys, as stored, can follow in the same segment.
  func canTake(_ keyCount: Int, _ firstKey: Int64, isComplemented: Bool) -> Bool {
    guard count > 0 else { return true }
    return count + keyCount <= Rice.maximumCount && isComplemented == self.isComplemented
      && firstKey > lastKey && UInt64(bitPattern: firstKey &- lastKey) <= Self.maximumStep
  }

  /// The keys are given as the steps between them minus one.
  mutating func append(
    _ steps: Span<UInt64>,
    from firstKey: Int64,
    to lastKey: Int64,
    isComplemented: Bool
  ) {
    if count == 0 {
      self.firstKey = firstKey
      self.isComplemented = isComplemented
    } else {
      self.steps.append(UInt64(bitPattern: firstKey &- self.lastKey) - 1)
    }
    self.steps.append(copying: steps)
    self.lastKey = lastKey
    count += steps.count + 1
  }

  func encode(to bytes: inout [UInt8]) {
    let span = UInt64(bitPattern: lastKey &- firstKey)
    Rice.encode(steps.span, parameter: 0, bits: span, to: &bytes)
  }

  mutating func removeAll() {
    steps.removeAll(keepingCapacity: true)
    count = 0
  }
}
