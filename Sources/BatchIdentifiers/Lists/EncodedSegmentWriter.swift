/// Cuts a stream of encoded keys into segments.
struct EncodedSegmentWriter: Sendable {
  private(set) var writer = BlockWriter(keyKind: .encoded)
  private(set) var isSorted = true
  private var keys = EncodedKeys()
  private var last: [UInt8] = []

  mutating func append(_ key: [UInt8]) {
    key.withUnsafeBytes { append($0) }
  }

  mutating func append(_ key: UnsafeRawBufferPointer) {
    if isSorted {
      // Nothing is below the empty string, so the first key passes.
      isSorted = last.withUnsafeBytes { compareBytes($0, key) < 0 }
      last.removeAll(keepingCapacity: true)
      last.append(contentsOf: key)
    }
    keys.append(key)
    if keys.count == SegmentCoding.plainCount || keys.bytes.count >= FrontCoding.segmentByteCount {
      flush()
    }
  }

  mutating func finish() {
    flush()
    writer.finishBlock()
    if !isSorted { writer.removeSeparators() }
  }

  private mutating func flush() {
    guard keys.count > 0 else { return }
    let (coding, payload) = pack()
    keys.withBytes(at: 0) { firstKey in
      payload.withUnsafeBytes { payload in
        writer.append(coding, count: keys.count, firstKey: firstKey, payload: payload)
      }
    }
    keys.removeAll()
  }

  /// The smallest form of the keys.
  private func pack() -> (SegmentCoding, [UInt8]) {
    if let payload = UUIDs.encode(keys) { return (.uuids, payload) }
    let plain = FrontCoding.encode(keys)
    var packed: [UInt8] = []
    packed.appendVarint(UInt64(plain.count))
    LZ4.compress(plain, to: &packed)
    return packed.count < plain.count ? (.frontCodedLZ4, packed) : (.frontCoded, plain)
  }
}
