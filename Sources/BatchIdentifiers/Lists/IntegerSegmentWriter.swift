/// Divides a stream of integer keys into segments, each in the smallest coding.
struct IntegerSegmentWriter: Sendable {
  /// Fewer ordered keys than this do not justify a separate segment.
  private static let minimumOrderedCount = 64

  private(set) var writer: BlockWriter
  private(set) var isSorted = true
  private var pending: [Int64] = []
  private var last: Int64?
  /// Equal steps that may continue.
  private var strideRun: (first: Int64, step: Int64, count: Int)?
  private var runs = RunCollector()
  /// Ordered keys whose steps have no useful low bits, which may continue.
  private var unary = UnaryRun()
  private var steps: [UInt64] = []
  private var bitmap: [UInt8] = []
  private var payload: [UInt8] = []
  private var scratch: [UInt8] = []
  private var seen: [UInt32] = []
  private var trial = StepsLZ4.Trial()

  init(spill: BlockSpill?) {
    writer = BlockWriter(keyKind: .integer, spill: spill)
    pending.reserveCapacity(SegmentCoding.plainCount)
    steps.reserveCapacity(SegmentCoding.plainCount)
  }

  @inline(__always)
  mutating func append(_ key: Int64) {
    pending.append(key)
    if pending.count == SegmentCoding.plainCount { flushPending() }
  }

  mutating func append(contentsOf keys: Span<Int64>) {
    var rest = keys
    while !rest.isEmpty {
      if pending.isEmpty, rest.count >= SegmentCoding.plainCount {
        write(rest.extracting(first: SegmentCoding.plainCount))
        rest = rest.extracting(droppingFirst: SegmentCoding.plainCount)
      } else {
        let part = rest.extracting(first: SegmentCoding.plainCount - pending.count)
        pending.append(copying: part)
        rest = rest.extracting(droppingFirst: part.count)
        if pending.count == SegmentCoding.plainCount { flushPending() }
      }
    }
  }

  /// Appends keys at equal distances, with the same result as one by one.
  mutating func append(_ stretch: IntegerStretch) {
    // Keys that complete the current segment, or do not fill one, are treated like any others.
    let size = SegmentCoding.plainCount
    let begun = pending.isEmpty ? 0 : min(size - pending.count, stretch.count)
    let end = begun + (stretch.count - begun) / size * size
    for index in 0..<begun { append(stretch[index]) }
    if begun < end { write(stretch[begun..<end]) }
    for index in end..<stretch.count { append(stretch[index]) }
  }

  /// Extends a long segment by keys that would fill several.
  private mutating func write(_ keys: IntegerStretch) {
    if isSorted { isSorted = keys.step > 0 && last.map { $0 < keys.first } ?? true }
    last = keys.last
    guard keys.step.magnitude == 1 else { return appendStride(keys) }
    flushStride()
    flushUnary()
    let isComplemented = keys.step < 0
    let first = isComplemented ? ~keys.first : keys.first
    if !runs.canTake(first, isComplemented: isComplemented) { flushRuns() }
    runs.append(Runs.Run(first: first, count: keys.count), isComplemented: isComplemented)
    if runs.isFull { flushRuns() }
  }

  mutating func finish() {
    flushPending()
    flushLong()
    writer.finishBlock()
  }

  private mutating func flushPending() {
    guard !pending.isEmpty else { return }
    var keys: [Int64] = []
    swap(&keys, &pending)
    write(keys.span)
    keys.removeAll(keepingCapacity: true)
    swap(&keys, &pending)
  }

  /// Writes the keys of one segment, or extends a long segment by them.
  private mutating func write(_ keys: Span<Int64>) {
    let shape = look(at: keys)
    if isSorted { isSorted = shape.isAscending && last.map { $0 < keys[0] } ?? true }
    last = keys[keys.count - 1]
    writeShaped(keys, shape)
  }

  private mutating func writeShaped(_ keys: Span<Int64>, _ shape: KeyShape) {
    let isOrdered = shape.isAscending || shape.isDescending
    if isOrdered, RunCollector.isMade(for: shape, keys) {
      appendRuns(keys, isComplemented: !shape.isAscending)
    } else if let step = shape.step {
      appendStride(keys, step)
    } else {
      flushStride()
      flushRuns()
      if isOrdered {
        writeSteps(keys, shape)
      } else if shape.orderedCount >= Self.minimumOrderedCount {
        // Ordered keys are written first: a list ordered by another column has ordered parts.
        let first = keys.extracting(first: shape.orderedCount)
        let rest = keys.extracting(droppingFirst: shape.orderedCount)
        writeShaped(first, look(at: first))
        writeShaped(rest, look(at: rest))
      } else {
        writeUnordered(keys)
      }
    }
  }

  // MARK: Segments of any length

  private mutating func appendStride(_ keys: Span<Int64>, _ step: Int64) {
    appendStride(from: keys[0], step, keys.count)
  }

  private mutating func appendStride(_ keys: IntegerStretch) {
    appendStride(from: keys.first, keys.step, keys.count)
  }

  private mutating func appendStride(from first: Int64, _ step: Int64, _ count: Int) {
    flushRuns()
    flushUnary()
    if let run = strideRun, step == run.step,
      first == run.first &+ Int64(run.count) &* run.step
    {
      strideRun?.count += count
    } else {
      flushStride()
      strideRun = (first, step, count)
    }
  }

  private mutating func appendRuns(_ keys: Span<Int64>, isComplemented: Bool) {
    flushStride()
    flushUnary()
    let first = isComplemented ? ~keys[0] : keys[0]
    if !runs.canTake(first, isComplemented: isComplemented) { flushRuns() }
    runs.append(keys, isComplemented: isComplemented)
    if runs.isFull { flushRuns() }
  }

  private mutating func flushLong() {
    flushStride()
    flushRuns()
    flushUnary()
  }

  private mutating func flushStride() {
    guard let run = strideRun else { return }
    writeStride(count: run.count, first: run.first, step: run.step, isComplemented: false)
    strideRun = nil
  }

  private mutating func writeStride(
    count: Int,
    first: Int64,
    step: Int64,
    isComplemented: Bool
  ) {
    payload.removeAll(keepingCapacity: true)
    payload.appendSignedVarint(step)
    append(.stride, isComplemented: isComplemented, count: count, firstKey: first)
  }

  private mutating func flushRuns() {
    guard runs.count > 0 else { return }
    let isComplemented = runs.isComplemented
    if runs.runs.count == 1 {
      writeStride(
        count: runs.count,
        first: runs.runs[0].first,
        step: 1,
        isComplemented: isComplemented
      )
    } else {
      payload.removeAll(keepingCapacity: true)
      let coding = runs.encode(to: &payload)
      let first = runs.runs[0].first
      append(coding, isComplemented: isComplemented, count: runs.count, firstKey: first)
    }
    runs.removeAll()
  }

  // MARK: Segments of a fixed length

  private mutating func look(at keys: Span<Int64>) -> KeyShape {
    if steps.count < keys.count { steps = [UInt64](repeating: 0, count: SegmentCoding.plainCount) }
    var output = steps.mutableSpan
    return KeyShape(keys, steps: &output)
  }

  private mutating func writeSteps(_ keys: Span<Int64>, _ shape: KeyShape) {
    let isComplemented = !shape.isAscending
    let firstKey = isComplemented ? ~keys[0] : keys[0]
    payload.removeAll(keepingCapacity: true)
    let numbers = steps
    let steps = numbers.span.extracting(first: keys.count - 1)
    guard let coding = encodeSteps(steps, keys, shape) else {
      let lastKey = isComplemented ? ~keys[keys.count - 1] : keys[keys.count - 1]
      if !unary.canTake(keys.count, firstKey, isComplemented: isComplemented) { flushUnary() }
      unary.append(steps, from: firstKey, to: lastKey, isComplemented: isComplemented)
      return
    }
    flushUnary()
    append(coding, isComplemented: isComplemented, count: keys.count, firstKey: firstKey)
  }

  private mutating func flushUnary() {
    guard unary.count > 0 else { return }
    // `payload` may contain the next segment.
    var bytes: [UInt8] = []
    unary.encode(to: &bytes)
    writer.append(
      .rice,
      isComplemented: unary.isComplemented,
      count: unary.count,
      firstKey: unary.firstKey,
      payload: bytes
    )
    unary.removeAll()
  }

  /// Encodes ordered keys into `payload` in the smallest coding; nil if that is ``UnaryRun``.
  private mutating func encodeSteps(
    _ steps: Span<UInt64>,
    _ keys: Span<Int64>,
    _ shape: KeyShape
  ) -> SegmentCoding? {
    let hasRuns = shape.runCount < keys.count
    let smallest = hasRuns ? 0 : PackedNumbers.smallest(steps)
    let width = PackedNumbers.width(steps, less: smallest)
    let span = UInt64(bitPattern: keys[keys.count - 1] &- keys[0])
    let rice = Rice.cost(steps)
    let packedBits = UInt64(width * steps.count + 8)
    var best = min(rice.bits, packedBits)
    var coding = rice.bits < packedBits ? SegmentCoding.rice : .packedSteps
    var bitmapPlan: (tag: UInt8, bits: Int)?
    if hasRuns, let bits = runBits(steps, shape, below: best) {
      best = bits
      coding = .runs
    }
    if let plan = Bitmap.plan(keys, isComplemented: !shape.isAscending, into: &bitmap),
      UInt64(plan.bits) + 8 < best
    {
      bitmapPlan = plan
      best = UInt64(plan.bits) + 8
      coding = .bitmap
    }
    if encodeRepeating(steps, best) { return .stepsLZ4 }
    switch (coding, bitmapPlan) {
    case (.runs, _):
      runs.encodePlanned(to: &payload)
    case (.bitmap, let plan?):
      let byteCount = Int((shape.isAscending ? span : 0 &- span) + 7) / 8
      Bitmap.encode(bitmap, byteCount: byteCount, tag: plan.tag, bits: plan.bits, to: &payload)
    case (.rice, _) where rice.parameter == 0:
      return nil
    case (.rice, _):
      Rice.encode(steps, parameter: rice.parameter, bits: rice.bits, to: &payload)
    default:
      PackedSteps.encode(steps, width: width, smallest: smallest, to: &payload)
    }
    return coding
  }

  private mutating func runBits(
    _ steps: Span<UInt64>,
    _ shape: KeyShape,
    below best: UInt64
  ) -> UInt64? {
    // Each run has at least two unary ones, and the rest is its key count: making a plan is only
    // worthwhile if this lower bound does not exceed the best cost so far.
    let lengths = Rice.leastBits(count: shape.runCount, sum: steps.count + 1 - shape.runCount)
    guard UInt64(lengths + shape.runCount) < best else { return nil }
    let bits = runs.plan(steps).bits + 24
    return bits < best ? bits : nil
  }

  private mutating func writeUnordered(_ keys: Span<Int64>) {
    flushUnary()
    var smallest = keys[0]
    var largest = keys[0]
    for index in keys.indices {
      smallest = min(smallest, keys[index])
      largest = max(largest, keys[index])
    }
    let count = keys.count - 1
    for index in 0..<count { steps[index] = (keys[index + 1] &- keys[index]).zigzag }
    let width = PackedNumbers.width(UInt64(bitPattern: largest &- smallest))
    let packedBits = UInt64(width * count + 8)
    payload.removeAll(keepingCapacity: true)
    let numbers = steps
    let codes = numbers.span.extracting(first: count)
    let rice = Rice.cost(codes)
    let best = min(rice.bits, packedBits)
    let coding: SegmentCoding
    if encodeRepeating(codes, best) {
      coding = .signedStepsLZ4
    } else if rice.bits < packedBits {
      Rice.encode(codes, parameter: rice.parameter, bits: rice.bits, to: &payload)
      coding = .signedRice
    } else {
      PackedKeys.encode(keys, width: width, smallest: smallest, to: &payload)
      coding = .packedKeys
    }
    append(coding, isComplemented: false, count: keys.count, firstKey: keys[0])
  }

  private mutating func encodeRepeating(_ numbers: Span<UInt64>, _ best: UInt64) -> Bool {
    guard trial.isDue(bits: best, count: numbers.count),
      StepsLZ4.isPromising(numbers, best, &seen)
    else { return false }
    let packed = StepsLZ4.encode(numbers, scratch: &scratch)
    trial.note(isWorth: UInt64(packed.count * 8) < best)
    if trial.isWorth { payload += packed }
    return trial.isWorth
  }

  private mutating func append(
    _ coding: SegmentCoding,
    isComplemented: Bool,
    count: Int,
    firstKey: Int64
  ) {
    writer.append(
      coding,
      isComplemented: isComplemented,
      count: count,
      firstKey: firstKey,
      payload: payload
    )
  }
}
