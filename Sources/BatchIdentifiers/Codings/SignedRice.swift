/// Steps of either sign as Rice codes of their zigzag codes.
///
/// Payload: as of ``Rice``.
enum SignedRice {
  static func decode(
    _ segment: Segment,
    _ payload: PaddedBytes,
    _ count: Int,
    _ output: KeyOutput
  ) throws(ByteReader.Damage) {
    guard count > 1 else {
      output[0] = segment.firstKey
      return
    }
    var reader = ByteReader(payload.bytes)
    let parameter = Int(try reader.byte())
    let lowBits = parameter * (segment.count - 1)
    let end = reader.remaining * 8
    guard parameter <= Rice.maximumParameter, lowBits <= end else {
      throw ByteReader.Damage("a segment has the wrong length")
    }
    let source = payload.bits(from: reader.offset)
    var unary = UnaryReader(source, from: lowBits, to: end)
    var key = segment.firstKey
    output[0] = key
    try Rice.decode(count - 1, parameter, source, lowBits: 0, &unary) { index, code in
      key = key &+ Int64(zigzag: code)
      output[index &+ 1] = key
    }
  }
}
