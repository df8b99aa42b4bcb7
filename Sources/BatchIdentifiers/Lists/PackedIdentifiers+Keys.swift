extension PackedIdentifiers {
  package func integers(in range: Range<Int>) throws(BatchError) -> [Int64] {
    var integers: [Int64] = []
    try appendIntegers(in: range, to: &integers)
    return integers
  }

  /// Appends the integer keys at some positions to an array, which is unchanged if this throws.
  package func appendIntegers(
    in range: Range<Int>,
    to integers: inout [Int64]
  ) throws(BatchError) {
    precondition(range.lowerBound >= 0 && range.upperBound <= count, "positions out of range")
    try checkKeyKind(.integer)
    let start = integers.count
    // The new elements are zeroed and then overwritten: arrays cannot grow uninitialized in place.
    integers.append(contentsOf: repeatElement(0, count: range.count))
    do throws(BatchError) {
      var output = integers.mutableSpan
      try decodeIntegers(in: range, into: &output, at: start)
    } catch {
      integers.removeLast(range.count)
      throw error
    }
  }

  func decodeIntegers(
    in range: Range<Int>,
    into output: inout MutableSpan<Int64>,
    at start: Int
  ) throws(BatchError) {
    var next = start
    try forEachBlock(in: range) { _, bytes, segments, part throws(ByteReader.Damage) in
      var start = 0
      for segment in segments {
        let end = start + segment.count
        if end > part.lowerBound {
          let wanted =
            (Swift.max(part.lowerBound, start) - start)..<(Swift.min(part.upperBound, end) - start)
          let keys = KeyOutput(&output, from: next, count: wanted.count)
          try IntegerDecoder.decode(segment, of: bytes, wanted, into: keys)
          next += wanted.count
        }
        if end >= part.upperBound { break }
        start = end
      }
    }
  }

  /// The encoded keys at some positions, in one buffer; integers become keys of one component.
  package func encodedKeys(in range: Range<Int>) throws(BatchError) -> EncodedKeys {
    var keys = EncodedKeys()
    try appendEncodedKeys(in: range, to: &keys)
    return keys
  }

  package func appendEncodedKeys(
    in range: Range<Int>,
    to keys: inout EncodedKeys
  ) throws(BatchError) {
    precondition(range.lowerBound >= 0 && range.upperBound <= count, "positions out of range")
    if header.keyKind == .integer {
      var encoder = EncodedKey.Encoder()
      for value in try integers(in: range) {
        encoder.removeAll()
        encoder.append(value)
        keys.append(encoder.bytes.span)
      }
      return
    }
    var decoded = EncodedKeys()
    var decoder = EncodedDecoder()
    var found = EncodedKeys()
    swap(&found, &keys)
    defer { swap(&found, &keys) }
    try forEachBlock(in: range) { _, bytes, segments, part throws(ByteReader.Damage) in
      var start = 0
      for segment in segments {
        let end = start + segment.count
        if end > part.lowerBound {
          decoded.removeAll()
          try decoder.decode(segment, of: bytes, into: &decoded)
          let wanted =
            (Swift.max(part.lowerBound, start) - start)..<(Swift.min(part.upperBound, end) - start)
          found.append(decoded, wanted)
        }
        if end >= part.upperBound { break }
        start = end
      }
    }
  }

  package func identifiers(in range: Range<Int>) throws(BatchError) -> [PersistentIdentifier] {
    switch header.keyKind {
    case .integer:
      return try integers(in: range).map { space.identifier(.integer($0)) }
    case .encoded:
      return try encodedKeys(in: range).map { space.identifier(.encoded($0)) }
    }
  }

  package func identifier(at position: Int) throws(BatchError) -> PersistentIdentifier {
    space.identifier(try key(at: position))
  }

  /// Decodes one segment; the next look-ups nearby do not.
  package func key(at position: Int) throws(BatchError) -> PrimaryKey {
    switch header.keyKind {
    case .integer: .integer(try integer(at: position))
    case .encoded: .encoded(try encodedKey(at: position))
    }
  }

  private func encodedKey(at position: Int) throws(BatchError) -> EncodedKey {
    precondition(position >= 0 && position < count, "position out of range")
    if let key = cache.encodedKey(at: position) { return key }
    var start = position
    var keys = EncodedKeys()
    try withSegment(at: position) { segment, first, bytes throws(ByteReader.Damage) in
      var decoder = EncodedDecoder()
      try decoder.decode(segment, of: bytes, into: &keys)
      start = first
    }
    cache.store(keys, from: start)
    return keys[position - start]
  }

  func integer(at position: Int) throws(BatchError) -> Int64 {
    precondition(position >= 0 && position < count, "position out of range")
    if let integer = cache.integer(at: position) { return integer }
    let window = try window(around: position)
    cache.store(window, near: position)
    return window.integers[position - window.start]
  }

  private func window(around position: Int) throws(BatchError) -> SegmentCache.Window {
    var window = SegmentCache.Window(start: position, integers: [])
    try withSegment(at: position) { segment, start, bytes throws(ByteReader.Damage) in
      window = try Self.window(
        of: segment,
        around: position - start,
        segmentStart: start,
        bytes
      )
    }
    return window
  }

  private func withSegment(
    at position: Int,
    _ body: (Segment, _ start: Int, PaddedBytes) throws(ByteReader.Damage) -> Void
  ) throws(BatchError) {
    let range = position..<(position + 1)
    try forEachBlock(in: range) { block, bytes, segments, part throws(ByteReader.Damage) in
      var start = 0
      guard
        let segment = segments.first(where: { segment in
          defer { start += segment.count }
          return part.lowerBound < start + segment.count
        })
      else { throw ByteReader.Damage("its segments do not add up") }
      try body(segment, directory.positions[block] + start - segment.count, bytes)
    }
  }

  static func window(
    of segment: Segment,
    around index: Int,
    segmentStart: Int,
    _ bytes: PaddedBytes
  ) throws(ByteReader.Damage) -> SegmentCache.Window {
    let window = try SegmentCache.Window(around: index, of: segment) {
      range,
      output throws(ByteReader.Damage) in
      try IntegerDecoder.decode(segment, of: bytes, range, into: output)
    }
    guard var window else { throw ByteReader.Damage("its segments do not add up") }
    window.start += segmentStart
    return window
  }

  func checkKeyKind(_ keyKind: IdentifierList.KeyKind) throws(BatchError) {
    guard header.keyKind == keyKind else {
      throw BatchError(
        .invalidIdentifier,
        "the keys of \(header.entityName) are not \(keyKind == .integer ? "integers" : "encoded")",
        remedy: "ask the list's header for its keyKind"
      )
    }
  }
}
