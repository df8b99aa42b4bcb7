/// Steps of either sign as Rice codes of their zigzag codes.
///
/// Payload: as of ``Rice``.
enum SignedRice {
  static func decode(
    _ segment: Segment,
    _ payload: UnsafeRawBufferPointer,
    _ count: Int,
    _ output: IntegerDecoder.Output
  ) throws(ByteReader.Damage) {
    guard count > 1 else { return }
    var reader = ByteReader(payload)
    let parameter = Int(try reader.byte())
    let lowBits = parameter * (segment.count - 1)
    let end = reader.remaining * 8
    guard parameter <= Rice.maximumParameter, lowBits <= end else {
      throw ByteReader.Damage("a segment has the wrong length")
    }
    let source = BitSource(base: payload.baseAddress.unsafelyUnwrapped + reader.offset)
    var unary = UnaryReader(source, from: lowBits, to: end)
    let rest = UnsafeMutableRawPointer(output + 1).assumingMemoryBound(to: UInt64.self)
    try Rice.decode(count - 1, parameter, source, lowBits: 0, &unary, rest)
    var key = segment.firstKey
    for index in 1..<count {
      key = key &+ Int64(zigzag: UInt64(bitPattern: output[index]))
      output[index] = key
    }
  }
}
