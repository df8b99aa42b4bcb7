/// Unpacks segments of integer keys.
///
/// A segment is checked as a whole before its numbers are read, so that the loops need no checks; a
/// block is followed by readable padding.
enum IntegerDecoder {
  static func decode(
    _ segment: Segment,
    of block: PaddedBytes,
    _ range: Range<Int>,
    into output: KeyOutput
  ) throws(ByteReader.Damage) {
    precondition(range.count == output.count)
    let payload = block.extracting(segment.payload)
    switch segment.coding {
    case .stride:
      var reader = ByteReader(payload.bytes)
      let step = try reader.signedVarint()
      let first = segment.firstKey &+ Int64(range.lowerBound) &* step
      var keys = output
      for index in 0..<range.count { keys.append(first &+ Int64(index) &* step) }
    case .runs: try Runs.decode(segment, payload, range, output)
    case .rice: try Rice.decodeKeys(segment, payload, range, output)
    case .packedSteps: try PackedSteps.decode(segment, payload, range, output)
    case .packedKeys: try PackedKeys.decode(segment, payload, range, output)
    case .bitmap: try Bitmap.decode(segment, payload, range, output)
    case .stepsLZ4, .signedStepsLZ4: try StepsLZ4.decode(segment, payload.bytes, range, output)
    case .signedRice: try SignedRice.decode(segment, payload, range, output)
    case .frontCoded, .frontCodedLZ4, .uuids:
      throw ByteReader.Damage("a segment has the wrong coding")
    }
    if segment.isComplemented { output.complement() }
  }

  static func decode(
    _ segment: Segment,
    of block: PaddedBytes,
    _ range: Range<Int>,
    into keys: inout [Int64]
  ) throws(ByteReader.Damage) {
    var span = keys.mutableSpan
    try decode(
      segment,
      of: block,
      range,
      into: KeyOutput(&span, from: 0, count: range.count)
    )
  }

  /// The number of keys below a value in an ascending segment, and the window with the next key, if
  /// there is one.
  ///
  /// Codings that can only be read from their start are thus read once.
  static func window(
    at value: Int64,
    in segment: Segment,
    of block: PaddedBytes
  ) throws(ByteReader.Damage) -> (index: Int, window: SegmentCache.Window?) {
    let payload = block.extracting(segment.payload)
    switch segment.coding {
    case .rice where !segment.isComplemented:
      let (index, place) = try Rice.lowerBound(of: value, segment, payload)
      let window = try SegmentCache.Window(around: index, of: segment) {
        range,
        output throws(ByteReader.Damage) in
        try Rice.decodeKeys(segment, payload, range, output, from: place)
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
    case .stride, .runs:
      let index = try lowerBound(of: value, in: segment, of: block)
      let window = try SegmentCache.Window(around: index, of: segment) {
        range,
        output throws(ByteReader.Damage) in
        try decode(segment, of: block, range, into: output)
      }
      return (index, window)
    default:
      let keys = try keys(of: segment, in: block)
      let index = keys.partitioningIndex { $0 >= value }
      return (index, SegmentCache.Window(around: index, of: keys))
    }
  }

  static func lowerBound(
    of value: Int64,
    in segment: Segment,
    of block: PaddedBytes
  ) throws(ByteReader.Damage) -> Int {
    let payload = block.extracting(segment.payload)
    switch segment.coding {
    case .rice:
      return try Rice.lowerBound(of: value, segment, payload).index
    case .bitmap:
      return try Bitmap.lowerBound(of: value, segment, payload).index
    case .stride:
      var reader = ByteReader(payload.bytes)
      let step = try reader.signedVarint()
      guard step > 0, value > segment.firstKey else { return 0 }
      let distance = UInt64(bitPattern: value) &- UInt64(bitPattern: segment.firstKey)
      return min(segment.count, Int(clamping: (distance - 1) / UInt64(step) + 1))
    case .runs:
      var below = 0
      try Runs.Reader(segment, payload).forEach { run in
        guard run.first < value else { return false }
        let distance = UInt64(bitPattern: value) &- UInt64(bitPattern: run.first)
        below += min(run.count, Int(clamping: distance))
        return distance > UInt64(run.count)
      }
      return below
    default:
      return try keys(of: segment, in: block).partitioningIndex { $0 >= value }
    }
  }

  private static func keys(
    of segment: Segment,
    in block: PaddedBytes
  ) throws(ByteReader.Damage) -> [Int64] {
    var keys = [Int64](repeating: 0, count: segment.count)
    try decode(segment, of: block, 0..<segment.count, into: &keys)
    return keys
  }
}
