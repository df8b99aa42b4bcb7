struct RunCollector: Sendable {
  private(set) var runs: [Runs.Run] = []
  private(set) var count = 0
  private(set) var isComplemented = false
  private var gaps: [UInt64] = []
  private var lengths: [UInt64] = []
  private var holes: [UInt64] = []
  private var plan: Runs.Plan?

  /// Whether some keys are better stored here than in a separate segment.
  ///
  /// This is the case for runs of at least ten keys, and for shorter runs separated by single
  /// missing numbers.
  static func isMade(for shape: KeyShape, _ keys: Span<Int64>) -> Bool {
    if shape.runCount * 10 <= keys.count + 10 { return true }
    let span = (keys[keys.count - 1] &- keys[0]).magnitude
    let missing = span &+ 1 &- UInt64(keys.count)
    return shape.runCount * 5 <= keys.count && missing <= UInt64(shape.runCount * 3 / 2)
  }

  /// Whether the runs of another full segment might not fit.
  var isFull: Bool { runs.count > Runs.maximumCount - SegmentCoding.plainCount / 4 }

  /// Whether keys that start with `first` (as stored) may follow.
  func canTake(_ first: Int64, isComplemented: Bool) -> Bool {
    guard let last = runs.last else { return true }
    return isComplemented == self.isComplemented && first > last.last
  }

  mutating func append(_ keys: Span<Int64>, isComplemented: Bool) {
    self.isComplemented = isComplemented
    count += keys.count
    let flip: Int64 = isComplemented ? -1 : 0
    var first = keys[0] ^ flip
    var start = 0
    for index in keys.indices {
      let key = keys[index] ^ flip
      if key != first &+ Int64(index &- start) {
        add(Runs.Run(first: first, count: index &- start))
        first = key
        start = index
      }
    }
    add(Runs.Run(first: first, count: keys.count - start))
  }

  /// The run already has its stored form.
  mutating func append(_ run: Runs.Run, isComplemented: Bool) {
    self.isComplemented = isComplemented
    count += run.count
    add(run)
  }

  private mutating func add(_ run: Runs.Run) {
    if let last = runs.last, last.last < Int64.max, last.last + 1 == run.first {
      runs[runs.count - 1].count += run.count
    } else {
      runs.append(run)
    }
  }

  mutating func removeAll() {
    runs.removeAll(keepingCapacity: true)
    count = 0
  }

  mutating func encode(to bytes: inout [UInt8]) -> SegmentCoding {
    gaps.removeAll(keepingCapacity: true)
    lengths.removeAll(keepingCapacity: true)
    for (index, run) in runs.enumerated() {
      lengths.append(UInt64(run.count - 1))
      if index > 0 { gaps.append(UInt64(bitPattern: run.first &- runs[index - 1].last) &- 2) }
    }
    plan = makePlan()
    guard !encodeHoles(to: &bytes) else { return .runs }
    encodePlanned(to: &bytes)
    return .runs
  }

  /// Encodes the runs by their single missing numbers, if that is shorter.
  private mutating func encodeHoles(to bytes: inout [UInt8]) -> Bool {
    guard let plan, gaps.reduce(0, { $0 &+ min($1, 1 << 32) }) < Runs.maximumHoleCount / 4 * 3,
      gaps.count + Int(gaps.reduce(0, +)) < Runs.maximumHoleCount
    else { return false }
    holes.removeAll(keepingCapacity: true)
    for (index, length) in lengths.enumerated() {
      holes.append(length + 1)
      guard index < gaps.count else { break }
      for _ in 0..<gaps[index] { holes.append(0) }
    }
    let cost = Rice.cost(holes.span)
    guard cost.bits < plan.bits else { return false }
    Runs.encodeHoles(holes.span, parameter: cost.parameter, bits: cost.bits, to: &bytes)
    return true
  }

  /// The cost of storing keys with these steps (minus one) as runs.
  mutating func plan(_ steps: Span<UInt64>) -> Runs.Plan {
    if gaps.count < steps.count + 1 {
      gaps = [UInt64](repeating: 0, count: SegmentCoding.plainCount)
      lengths = gaps
    }
    let count = Self.split(steps, into: &gaps, &lengths)
    gaps.removeLast(gaps.count - count)
    lengths.removeLast(lengths.count - count - 1)
    let plan = makePlan()
    self.plan = plan
    return plan
  }

  /// Splits steps (minus one) into the gaps between runs and the lengths of runs, minus one each,
  /// and returns the number of gaps.
  private static func split(
    _ steps: Span<UInt64>,
    into gaps: inout [UInt64],
    _ lengths: inout [UInt64]
  ) -> Int {
    var gaps = gaps.mutableSpan
    var lengths = lengths.mutableSpan
    var start = 0
    var count = 0
    for index in steps.indices where steps[index] != 0 {
      gaps[count] = steps[index] &- 1
      lengths[count] = UInt64(truncatingIfNeeded: index &- start)
      start = index &+ 1
      count &+= 1
    }
    lengths[count] = UInt64(truncatingIfNeeded: steps.count &- start)
    return count
  }

  private func makePlan() -> Runs.Plan {
    Runs.Plan(gaps: gaps.span, lengths: lengths.span)
  }

  func encodePlanned(to bytes: inout [UInt8]) {
    guard let plan else { return }
    Runs.encode(gaps: gaps.span, lengths: lengths.span, plan, to: &bytes)
  }
}
