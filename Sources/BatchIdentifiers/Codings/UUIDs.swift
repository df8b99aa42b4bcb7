/// Keys that are UUIDs, as blobs of 16 bytes or as text, in 16 bytes each or less.
///
/// Payload: the form (one byte: 0 a blob, 1 lowercase text, 2 uppercase text), the Rice parameter
/// (one byte, 255 if the first halves do not ascend), the first halves, the second halves unchanged
/// (8 bytes each, big-endian). Ascending first halves are stored as the first of them (8 bytes,
/// little-endian) and the Rice codes of the steps between them, in whole bytes; others are
/// unchanged too.
enum UUIDs {
  private enum Form: UInt8, CaseIterable {
    case blob = 0
    case lowercase = 1
    case uppercase = 2
  }

  private static let unordered: UInt8 = 255
  private static let textByteCount = 36

  // MARK: Encoding

  /// The payload, or nil if a key is not a UUID of the same form as the first.
  static func encode(_ keys: EncodedKeys) -> [UInt8]? {
    for form in Form.allCases {
      guard let halves = halves(of: keys, form) else { continue }
      return encode(halves, form)
    }
    return nil
  }

  private static func encode(_ halves: [(high: UInt64, low: UInt64)], _ form: Form) -> [UInt8] {
    var bytes = [form.rawValue]
    let isAscending = zip(halves, halves.dropFirst()).allSatisfy { $0.high <= $1.high }
    let steps = isAscending ? zip(halves, halves.dropFirst()).map { $1.high - $0.high } : []
    let plan = Rice.cost(steps.span)
    if isAscending, plan.bits < UInt64(steps.count) * 64 {
      bytes.append(UInt8(plan.parameter))
      bytes.appendInteger(halves[0].high)
      bytes.appendBits(atMost: Int(plan.bits + 7) / 8) { writer in
        Rice.writeLowBits(steps.span, plan.parameter, &writer)
        Rice.writeUnaryParts(steps.span, plan.parameter, &writer)
      }
    } else {
      bytes.append(unordered)
      for half in halves { bytes.appendInteger(half.high.byteSwapped) }
    }
    for half in halves { bytes.appendInteger(half.low.byteSwapped) }
    return bytes
  }

  private static func halves(
    of keys: EncodedKeys,
    _ form: Form
  ) -> [(high: UInt64, low: UInt64)]? {
    var halves: [(high: UInt64, low: UInt64)] = []
    halves.reserveCapacity(keys.count)
    var reader = EncodedKey.ComponentReader()
    for index in 0..<keys.count {
      guard let half = uuid(keys.span(at: index), form, &reader) else { return nil }
      halves.append(half)
    }
    return halves
  }

  private static func uuid(
    _ key: Span<UInt8>,
    _ form: Form,
    _ reader: inout EncodedKey.ComponentReader
  ) -> (high: UInt64, low: UInt64)? {
    guard key.count >= 18, key[0] == (form == .blob ? EncodedKey.Tag.blob : EncodedKey.Tag.text)
    else { return nil }
    var result: (UInt64, UInt64)?
    var componentCount = 0
    reader.forEachComponent(in: key) { component in
      componentCount += 1
      switch component {
      case .blob(let bytes) where bytes.count == 16:
        result = (bytes.bigEndian(at: 0, as: UInt64.self), bytes.bigEndian(at: 8, as: UInt64.self))
      case .text(let text) where text.count == textByteCount:
        result = parse(text, form)
      default:
        break
      }
    }
    return componentCount == 1 ? result : nil
  }

  private static func parse(
    _ text: Span<UInt8>,
    _ form: Form
  ) -> (high: UInt64, low: UInt64)? {
    var halves: (UInt64, UInt64) = (0, 0)
    var digits = 0
    for index in text.indices {
      let byte = text[index]
      if isHyphen(index) {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let value = PercentEncoding.hexValue(byte),
        PercentEncoding.hexDigit(value, uppercase: form == .uppercase) == byte
      else { return nil }
      if digits < 16 {
        halves.0 = halves.0 << 4 | UInt64(value)
      } else {
        halves.1 = halves.1 << 4 | UInt64(value)
      }
      digits += 1
    }
    return halves
  }

  private static func isHyphen(_ index: Int) -> Bool {
    index == 8 || index == 13 || index == 18 || index == 23
  }

  // MARK: Decoding

  static func decode(
    _ payload: PaddedBytes,
    count: Int,
    into keys: inout EncodedKeys
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(payload.bytes)
    guard let form = Form(rawValue: try reader.byte()) else {
      throw ByteReader.Damage("its UUIDs have an unknown form")
    }
    let parameter = Int(try reader.byte())
    guard reader.remaining >= count * 8 else { throw ByteReader.Damage("it ends too early") }
    var highs = [UInt64](repeating: 0, count: count)
    if parameter == Int(unordered) {
      for index in 0..<count { highs[index] = try reader.integer(UInt64.self).byteSwapped }
    } else {
      try decodeHighs(&reader, payload, parameter, count, &highs)
    }
    guard reader.remaining == count * 8 else {
      throw ByteReader.Damage("a segment has the wrong length")
    }
    var encoder = EncodedKey.Encoder()
    for high in highs {
      let low = try reader.integer(UInt64.self).byteSwapped
      encoder.removeAll()
      append(high, low, form, to: &encoder)
      keys.append(encoder.bytes.span)
    }
  }

  private static func decodeHighs(
    _ reader: inout ByteReader,
    _ payload: PaddedBytes,
    _ parameter: Int,
    _ count: Int,
    _ highs: inout [UInt64]
  ) throws(ByteReader.Damage) {
    guard parameter <= Rice.maximumParameter else {
      throw ByteReader.Damage("a Rice parameter is out of bounds")
    }
    var high = try reader.integer(UInt64.self)
    let byteCount = reader.remaining - count * 8
    guard byteCount >= 0, parameter * (count - 1) <= byteCount * 8 else {
      throw ByteReader.Damage("a segment has the wrong length")
    }
    let source = payload.bits(from: reader.offset)
    _ = try reader.take(byteCount)
    highs[0] = high
    guard count > 1 else { return }
    var unary = UnaryReader(from: parameter * (count - 1), to: byteCount * 8)
    var output = highs.mutableSpan
    var index = 1
    try Rice.decode(count - 1, parameter, source, lowBits: 0, &unary) { step in
      high = high &+ step
      output[index] = high
      index += 1
    }
  }

  private static func append(
    _ high: UInt64,
    _ low: UInt64,
    _ form: Form,
    to encoder: inout EncodedKey.Encoder
  ) {
    var bytes = InlineArray<16, UInt8>(repeating: 0)
    for index in 0..<8 {
      let shift = UInt64(56 - index * 8)
      bytes[index] = UInt8(truncatingIfNeeded: high &>> shift)
      bytes[index + 8] = UInt8(truncatingIfNeeded: low &>> shift)
    }
    if form == .blob { return encoder.append(blob: bytes.span) }
    var text = InlineArray<36, UInt8>(repeating: UInt8(ascii: "-"))
    var place = 0
    for index in 0..<16 {
      if isHyphen(place) { place += 1 }
      text[place] = PercentEncoding.hexDigit(bytes[index] >> 4, uppercase: form == .uppercase)
      text[place + 1] = PercentEncoding.hexDigit(bytes[index] & 15, uppercase: form == .uppercase)
      place += 2
    }
    encoder.append(text: text.span)
  }
}
