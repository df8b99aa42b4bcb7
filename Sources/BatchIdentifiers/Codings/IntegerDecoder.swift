/// Unpacks segments of integer keys.
///
/// A segment is checked as a whole before its numbers are read, so that the loops need no checks
/// of their own; a block has readable padding behind it.
enum IntegerDecoder {
  typealias Output = UnsafeMutablePointer<Int64>

  /// Decodes the keys at `range` within a segment into memory with room for them.
  static func decode(
    _ segment: Segment,
    of block: UnsafeRawBufferPointer,
    _ range: Range<Int>,
    into output: Output
  ) throws(ByteReader.Damage) {
    let payload = UnsafeRawBufferPointer(rebasing: block[segment.payload])
    switch segment.coding {
    case .stride:
      var reader = ByteReader(payload)
      let step = try reader.signedVarint()
      let first = segment.firstKey &+ Int64(range.lowerBound) &* step
      for index in 0..<range.count { output[index] = first &+ Int64(index) &* step }
    case .runs: try Runs.decode(segment, payload, range, output)
    case .rice: try Rice.decodeKeys(segment, payload, range, output)
    case .packedSteps: try PackedSteps.decode(segment, payload, range, output)
    case .packedKeys: try PackedKeys.decode(segment, payload, range, output)
    case .bitmap: try Bitmap.decode(segment, payload, range, output)
    case .stepsLZ4, .signedStepsLZ4, .signedRice:
      try decodeFromStart(segment, payload, range, output)
    case .frontCoded, .frontCodedLZ4, .uuids:
      throw ByteReader.Damage("a segment has the wrong coding")
    }
    if segment.isComplemented {
      for index in 0..<range.count { output[index] = ~output[index] }
    }
  }

  /// Decodes with a coding that knows no shorter way to a position than all before it.
  private static func decodeFromStart(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ range: Range<Int>,
    _ output: Output
  ) throws(ByteReader.Damage) {
    var failure: ByteReader.Damage?
    withUnsafeTemporaryAllocation(of: Int64.self, capacity: range.upperBound) { prefix in
      guard let base = prefix.baseAddress else { return }
      base.pointee = segment.firstKey
      do throws(ByteReader.Damage) {
        if segment.coding == .signedRice {
          try SignedRice.decode(segment, payload, range.upperBound, base)
        } else {
          try StepsLZ4.decode(segment, payload, range.upperBound, base)
        }
        output.update(from: base + range.lowerBound, count: range.count)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
  }

  /// How many keys of an ascending segment are below a value, and the window of keys that the first
  /// of the others is in, unless there is none.
  ///
  /// Codings that can only be read from their start are not read twice for that.
  static func window(
    at value: Int64,
    in segment: Segment,
    of block: UnsafeRawBufferPointer
  ) throws(ByteReader.Damage) -> (index: Int, window: SegmentCache.Window?) {
    let payload = UnsafeRawBufferPointer(rebasing: block[segment.payload])
    switch segment.coding {
    case .rice where !segment.isComplemented:
      let (index, place) = try Rice.lowerBound(of: value, segment, payload)
      let window = try SegmentCache.Window(around: index, of: segment) {
        range,
        output throws(ByteReader.Damage) in
        try Rice.decodeKeys(segment, place, range, output)
      }
      return (index, window)
    case .bitmap where !segment.isComplemented:
      let (index, place) = try Bitmap.lowerBound(of: value, segment, payload)
      let window = try SegmentCache.Window(around: index, of: segment) {
        range,
        output throws(ByteReader.Damage) in
        try Bitmap.decode(segment, payload, range, output, from: place)
      }
      return (index, window)
    default:
      let index = try lowerBound(of: value, in: segment, of: block)
      let window = try SegmentCache.Window(around: index, of: segment) {
        range,
        output throws(ByteReader.Damage) in
        try decode(segment, of: block, range, into: output)
      }
      return (index, window)
    }
  }

  /// How many keys of an ascending segment are below a value.
  static func lowerBound(
    of value: Int64,
    in segment: Segment,
    of block: UnsafeRawBufferPointer
  ) throws(ByteReader.Damage) -> Int {
    let payload = UnsafeRawBufferPointer(rebasing: block[segment.payload])
    switch segment.coding {
    case .rice:
      return try Rice.lowerBound(of: value, segment, payload).index
    case .bitmap:
      return try Bitmap.lowerBound(of: value, segment, payload).index
    case .stride:
      var reader = ByteReader(payload)
      let step = try reader.signedVarint()
      guard step > 0, value > segment.firstKey else { return 0 }
      let distance = UInt64(bitPattern: value) &- UInt64(bitPattern: segment.firstKey)
      return min(segment.count, Int(clamping: (distance - 1) / UInt64(step) + 1))
    case .runs:
      var below = 0
      try Runs.forEachRun(segment, payload) { first, count in
        guard first < value else { return false }
        let distance = UInt64(bitPattern: value) &- UInt64(bitPattern: first)
        below += min(count, Int(clamping: distance))
        return distance > UInt64(count)
      }
      return below
    default:
      var keys = [Int64](repeating: 0, count: segment.count)
      try keys.withMutableElements { output throws(ByteReader.Damage) in
        guard let base = output.baseAddress else { return }
        try decode(segment, of: block, 0..<segment.count, into: base)
      }
      return keys.partitioningIndex { $0 >= value }
    }
  }
}

extension RandomAccessCollection where Index == Int {
  /// The first index at which a condition holds that holds at all later ones, or `endIndex`.
  func partitioningIndex<Failure: Error>(
    where condition: (Element) throws(Failure) -> Bool
  ) throws(Failure) -> Int {
    var low = startIndex
    var high = endIndex
    while low < high {
      let middle = low + (high - low) / 2
      if try condition(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
