/// Keys that are UUIDs, as blobs of 16 bytes or as text, in 16 bytes each or less.
///
/// Payload: the form (one byte: 0 a blob, 1 lowercase text, 2 uppercase text), the Rice parameter
/// (one byte, 255 if the first halves do not ascend), the first halves, the second halves unchanged
/// (8 bytes each, big-endian). Ascending first halves are stored as the first one (8 bytes,
/// little-endian) and the Rice codes of the steps between them, in whole bytes; others are stored
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

  /// Nil if a key is not a UUID in the form of the first key.
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
    // Text of a UUID has no byte to escape.
    if form != .blob {
      guard key.count == textByteCount + 2, key[textByteCount + 1] == 0 else { return nil }
      return parse(key.extracting(1...textByteCount), form)
    }
    var result: (UInt64, UInt64)?
    var componentCount = 0
    reader.forEachComponent(in: key) { component in
      componentCount += 1
      switch component {
      case .blob(let bytes) where bytes.count == 16:
        result = (bytes.bigEndian(at: 0, as: UInt64.self), bytes.bigEndian(at: 8, as: UInt64.self))
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
    let hyphen = UInt8(ascii: "-")
    guard text[8] == hyphen, text[13] == hyphen, text[18] == hyphen, text[23] == hyphen else {
      return nil
    }
    let letter = form == .uppercase ? UInt8(ascii: "A") : UInt8(ascii: "a")
    var all: UInt8 = 0
    /// Appends the digits in a range to a number, without branches, since this takes much of the
    /// time.
    func read(_ range: Range<Int>, into number: inout UInt64) {
      for index in range {
        let (digit, rest) = (text[index] &- UInt8(ascii: "0"), text[index] &- letter)
        let value: UInt8 = digit < 10 ? digit : rest < 6 ? rest + 10 : 0xff
        all |= value
        number = number << 4 | UInt64(value & 15)
      }
    }
    var halves: (UInt64, UInt64) = (0, 0)
    read(0..<8, into: &halves.0)
    read(9..<13, into: &halves.0)
    read(14..<18, into: &halves.0)
    read(19..<23, into: &halves.1)
    read(24..<36, into: &halves.1)
    return all < 16 ? halves : nil
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
      if form == .blob {
        var bytes = InlineArray<16, UInt8>(repeating: 0)
        for index in 0..<8 {
          let shift = UInt64(56 - index * 8)
          bytes[index] = UInt8(truncatingIfNeeded: high &>> shift)
          bytes[index + 8] = UInt8(truncatingIfNeeded: low &>> shift)
        }
        encoder.removeAll()
        encoder.append(blob: bytes.span)
        keys.append(encoder.bytes.span)
      } else {
        keys.append(text(high, low, form).span)
      }
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

  private static func text(
    _ high: UInt64,
    _ low: UInt64,
    _ form: Form
  ) -> InlineArray<38, UInt8> {
    var key = InlineArray<38, UInt8>(repeating: UInt8(ascii: "-"))
    key[0] = EncodedKey.Tag.text
    key[37] = 0
    let letter = (form == .uppercase ? UInt8(ascii: "A") : UInt8(ascii: "a")) - 10
    func write(_ number: UInt64, _ range: Range<Int>, from bit: Int) {
      var shift = bit
      for place in range {
        shift -= 4
        let value = UInt8(truncatingIfNeeded: number &>> UInt64(shift)) & 15
        key[place + 1] = value + (value < 10 ? UInt8(ascii: "0") : letter)
      }
    }
    write(high, 0..<8, from: 64)
    write(high, 9..<13, from: 32)
    write(high, 14..<18, from: 16)
    write(low, 19..<23, from: 64)
    write(low, 24..<36, from: 48)
    return key
  }
}
