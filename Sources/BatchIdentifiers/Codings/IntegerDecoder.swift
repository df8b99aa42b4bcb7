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
    if segment.coding == .stride {
      var reader = ByteReader(payload)
      let step = try reader.signedVarint()
      var key = segment.firstKey &+ Int64(range.lowerBound) &* step
      for index in 0..<range.count {
        output[index] = key
        key = key &+ step
      }
    } else if range.lowerBound == 0 {
      try decodePrefix(segment, payload, range.upperBound, output)
    } else {
      var failure: ByteReader.Damage?
      withUnsafeTemporaryAllocation(of: Int64.self, capacity: range.upperBound) { prefix in
        guard let base = prefix.baseAddress else { return }
        do throws(ByteReader.Damage) {
          try decodePrefix(segment, payload, range.upperBound, base)
          output.update(from: base + range.lowerBound, count: range.count)
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
    }
    if segment.isComplemented {
      for index in 0..<range.count { output[index] = ~output[index] }
    }
  }

  private static func decodePrefix(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ count: Int,
    _ output: Output
  ) throws(ByteReader.Damage) {
    output[0] = segment.firstKey
    switch segment.coding {
    case .rice: try Rice.decodeKeys(segment, payload, count, output)
    case .packedSteps: try PackedSteps.decode(segment, payload, count, output)
    case .packedKeys: try PackedKeys.decode(segment, payload, count, output)
    case .stride, .frontCoded, .frontCodedLZ4:
      throw ByteReader.Damage("a segment has the wrong coding")
    }
  }
}
