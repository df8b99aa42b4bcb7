/// Cuts a stream of integer keys into segments, each in the smallest coding.
struct IntegerSegmentWriter: Sendable {
  private(set) var writer = BlockWriter(keyKind: .integer)
  private(set) var isSorted = true
  private var pending: [Int64] = []
  private var last: Int64?
  /// Equal steps that may go on.
  private var run: (first: Int64, step: Int64, count: Int)?
  private var steps: [UInt64] = []
  private var payload: [UInt8] = []

  init() {
    pending.reserveCapacity(SegmentCoding.plainCount)
  }

  mutating func append(_ key: Int64) {
    pending.append(key)
    if pending.count == SegmentCoding.plainCount { flushPending() }
  }

  mutating func append(contentsOf keys: UnsafeBufferPointer<Int64>) {
    var rest = keys[...]
    while !rest.isEmpty {
      if pending.isEmpty, rest.count >= SegmentCoding.plainCount {
        write(UnsafeBufferPointer(rebasing: rest.prefix(SegmentCoding.plainCount)))
        rest = rest.dropFirst(SegmentCoding.plainCount)
      } else {
        let part = rest.prefix(SegmentCoding.plainCount - pending.count)
        pending.append(contentsOf: part)
        rest = rest.dropFirst(part.count)
        if pending.count == SegmentCoding.plainCount { flushPending() }
      }
    }
  }

  mutating func finish() {
    flushPending()
    flushRun()
    writer.finishBlock()
  }

  private mutating func flushPending() {
    guard !pending.isEmpty else { return }
    var keys: [Int64] = []
    swap(&keys, &pending)
    keys.withUnsafeBufferPointer { write($0) }
    keys.removeAll(keepingCapacity: true)
    swap(&keys, &pending)
  }

  /// Writes the keys of one segment, or lets a run of equal steps grow by them.
  private mutating func write(_ keys: UnsafeBufferPointer<Int64>) {
    let shape = Shape(keys)
    if isSorted { isSorted = shape.isAscending && last.map { $0 < keys[0] } ?? true }
    last = keys[keys.count - 1]
    if let step = shape.step {
      if let run, step == run.step || keys.count == 1,
        keys[0] == run.first &+ Int64(run.count) &* run.step
      {
        self.run?.count += keys.count
      } else {
        flushRun()
        run = (keys[0], step, keys.count)
      }
      return
    }
    flushRun()
    if shape.isAscending || shape.isDescending {
      writeSteps(keys, isComplemented: shape.isDescending)
    } else {
      writeKeys(keys)
    }
  }

  private mutating func flushRun() {
    guard let run else { return }
    payload.removeAll(keepingCapacity: true)
    payload.appendSignedVarint(run.step)
    append(.stride, isComplemented: false, count: run.count, firstKey: run.first)
    self.run = nil
  }

  private mutating func writeSteps(_ keys: UnsafeBufferPointer<Int64>, isComplemented: Bool) {
    steps.removeAll(keepingCapacity: true)
    var smallest = UInt64.max
    var largest: UInt64 = 0
    for index in 1..<keys.count {
      let difference =
        isComplemented ? keys[index - 1] &- keys[index] : keys[index] &- keys[index - 1]
      let step = UInt64(bitPattern: difference) &- 1
      smallest = min(smallest, step)
      largest = max(largest, step)
      steps.append(step)
    }
    let firstKey = isComplemented ? ~keys[0] : keys[0]
    payload.removeAll(keepingCapacity: true)
    let width = PackedNumbers.width(largest - smallest)
    let coding = steps.withUnsafeBufferPointer { steps in
      let rice = Rice.cost(steps)
      if rice.bits < UInt64(width * steps.count) {
        Rice.encode(steps, parameter: rice.parameter, bits: rice.bits, to: &payload)
        return SegmentCoding.rice
      } else {
        PackedSteps.encode(steps, width: width, smallest: smallest, to: &payload)
        return SegmentCoding.packedSteps
      }
    }
    append(coding, isComplemented: isComplemented, count: keys.count, firstKey: firstKey)
  }

  private mutating func writeKeys(_ keys: UnsafeBufferPointer<Int64>) {
    var smallest = keys[0]
    var largest = keys[0]
    for key in keys {
      smallest = min(smallest, key)
      largest = max(largest, key)
    }
    payload.removeAll(keepingCapacity: true)
    let width = PackedNumbers.width(UInt64(bitPattern: largest &- smallest))
    PackedKeys.encode(keys, width: width, smallest: smallest, to: &payload)
    append(.packedKeys, isComplemented: false, count: keys.count, firstKey: keys[0])
  }

  private mutating func append(
    _ coding: SegmentCoding,
    isComplemented: Bool,
    count: Int,
    firstKey: Int64
  ) {
    payload.withUnsafeBytes {
      writer.append(
        coding,
        isComplemented: isComplemented,
        count: count,
        firstKey: firstKey,
        payload: $0
      )
    }
  }

  /// What can be said about some keys at a glance.
  private struct Shape {
    var isAscending = true
    var isDescending = true
    /// The step, if all are equal.
    var step: Int64?

    init(_ keys: UnsafeBufferPointer<Int64>) {
      guard keys.count > 1 else {
        step = 1
        return
      }
      let first = keys[1] &- keys[0]
      var isEven = true
      for index in 1..<keys.count {
        isAscending = isAscending && keys[index] > keys[index - 1]
        isDescending = isDescending && keys[index] < keys[index - 1]
        isEven = isEven && keys[index] &- keys[index - 1] == first
      }
      if isEven { step = first }
    }
  }
}
