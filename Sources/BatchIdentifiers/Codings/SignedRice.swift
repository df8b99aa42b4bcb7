/// Steps of either sign as Rice codes of their zigzag codes; the payload is that of ``Rice``.
enum SignedRice {
  static func decode(
    _ segment: Segment,
    _ payload: PaddedBytes,
    _ range: Range<Int>,
    _ output: KeyOutput
  ) throws(ByteReader.Damage) {
    var output = output
    if range.lowerBound == 0 { output.append(segment.firstKey) }
    guard range.upperBound > 1 else { return }
    var reader = ByteReader(payload.bytes)
    let parameter = Int(try reader.byte())
    let lowBits = parameter * (segment.count - 1)
    let end = reader.remaining * 8
    guard parameter <= Rice.maximumParameter, lowBits <= end else {
      throw ByteReader.Damage("a segment has the wrong length")
    }
    let source = payload.bits(from: reader.offset)
    var unary = UnaryReader(from: lowBits, to: end)
    var key = segment.firstKey
    // The step at index i leads to key i + 1.
    let first = max(range.lowerBound - 1, 0)
    try Rice.decode(first, parameter, source, lowBits: 0, &unary) { code in
      key = key &+ Int64(zigzag: code)
    }
    let count = range.upperBound - 1 - first
    try Rice.decode(count, parameter, source, lowBits: first * parameter, &unary) { code in
      key = key &+ Int64(zigzag: code)
      output.append(key)
    }
  }
}
