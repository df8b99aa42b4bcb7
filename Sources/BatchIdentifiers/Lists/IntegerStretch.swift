/// Integer keys at equal distances, however many.
///
/// A segment of a few bytes may represent any number of keys. Operations on all of them at once
/// take no longer for that.
struct IntegerStretch {
  private(set) var first: Int64
  let step: Int64
  private(set) var count: Int

  /// Nil if the keys, starting at `first`, would not all fit in 64 bits.
  init?(first: Int64, step: Int64, count: Int) {
    let (distance, isTooFar) = Int64(count - 1).multipliedReportingOverflow(by: step)
    guard !isTooFar, !first.addingReportingOverflow(distance).overflow else { return nil }
    self.first = first
    self.step = step
    self.count = count
  }

  init(_ key: Int64) {
    first = key
    step = 1
    count = 1
  }

  var last: Int64 { self[count - 1] }

  subscript(_ index: Int) -> Int64 { first + Int64(index) * step }

  subscript(_ range: Range<Int>) -> IntegerStretch {
    var part = self
    part.first = self[range.lowerBound]
    part.count = range.count
    return part
  }

  /// The number of keys in an ascending stretch below a value, which must be above the first key.
  func count(below value: Int64) -> Int {
    let distance = UInt64(bitPattern: value &- first)
    return Int(min(UInt64(count), (distance - 1) / UInt64(step) + 1))
  }

  var ascending: IntegerStretch {
    if step == 0 { return IntegerStretch(first) }
    guard step < 0 else { return self }
    // The distance -2⁶³ has no opposite, and only two keys can be that far apart.
    guard step > Int64.min else { return self }
    return IntegerStretch(first: last, step: -step, count: count) ?? self
  }
}

/// A part of a list of integers: keys stored one by one, or many stored as one.
enum IntegerPart {
  case keys([Int64])
  case stretch(IntegerStretch)
}

extension PackedIdentifiers {
  /// The keys at some positions within a block, in parts no longer than the stored ones.
  func integerParts(
    ofBlock index: Int,
    _ range: Range<Int>,
    scratch: inout [UInt8]
  ) throws(BatchError) -> [IntegerPart] {
    try withBlock(index, scratch: &scratch) { bytes, segments throws(ByteReader.Damage) in
      var parts: [IntegerPart] = []
      var start = 0
      for segment in segments {
        let end = start + segment.count
        if end > range.lowerBound {
          let wanted =
            (Swift.max(range.lowerBound, start)
              - start)..<(Swift.min(range.upperBound, end) - start)
          try appendParts(of: segment, in: bytes, wanted, to: &parts)
        }
        if end >= range.upperBound { break }
        start = end
      }
      return parts
    }
  }

  func forEachIntegerPart(
    of range: Range<Int>,
    _ body: (IntegerPart) throws(BatchError) -> Void
  ) throws(BatchError) {
    guard !range.isEmpty else { return }
    var scratch: [UInt8] = []
    var index = directory.block(holding: range.lowerBound)
    while index < blockCount, directory.positions[index] < range.upperBound {
      let start = directory.positions[index]
      let end = directory.positions[index + 1]
      let part =
        (Swift.max(range.lowerBound, start) - start)..<(Swift.min(range.upperBound, end) - start)
      for part in try integerParts(ofBlock: index, part, scratch: &scratch) { try body(part) }
      index += 1
    }
  }

  private func appendParts(
    of segment: Segment,
    in bytes: PaddedBytes,
    _ range: Range<Int>,
    to parts: inout [IntegerPart]
  ) throws(ByteReader.Damage) {
    let payload = bytes.extracting(segment.payload)
    func append(_ first: Int64, _ step: Int64, _ count: Int) -> Bool {
      let flip: Int64 = segment.isComplemented ? -1 : 0
      let stepAsListed = segment.isComplemented ? 0 &- step : step
      guard let stretch = IntegerStretch(first: first ^ flip, step: stepAsListed, count: count)
      else { return false }
      parts.append(.stretch(stretch))
      return true
    }
    switch segment.coding {
    case .stride:
      var reader = ByteReader(payload.bytes)
      let step = try reader.signedVarint()
      let first = segment.firstKey &+ Int64(range.lowerBound) &* step
      guard !append(first, step, range.count) else { return }
      // Otherwise, a few keys may exceed the range of 64 bits; there are no more than in a segment.
      guard range.count <= SegmentCoding.plainCount else { throw Self.outOfBounds }
    case .runs:
      var position = 0
      try Runs.Reader(segment, payload).forEach { run throws(ByteReader.Damage) in
        let low = Swift.max(range.lowerBound, position)
        let high = Swift.min(range.upperBound, position + run.count)
        if low < high {
          guard append(run.first &+ Int64(low - position), 1, high - low) else {
            throw Self.outOfBounds
          }
        }
        position += run.count
        return position < range.upperBound
      }
      return
    default: break
    }
    var keys = [Int64](repeating: 0, count: range.count)
    try IntegerDecoder.decode(segment, of: bytes, range, into: &keys)
    parts.append(.keys(keys))
  }

  private static var outOfBounds: ByteReader.Damage {
    ByteReader.Damage("its keys go over the end of the numbers")
  }
}
