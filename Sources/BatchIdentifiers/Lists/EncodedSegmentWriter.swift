struct EncodedSegmentWriter: Sendable {
  private(set) var writer: BlockWriter
  private(set) var isSorted = true
  private var keys = EncodedKeys()
  private var last: [UInt8] = []

  init(spill: BlockSpill?) {
    writer = BlockWriter(keyKind: .encoded, spill: spill)
  }

  mutating func append(_ key: [UInt8]) {
    append(key.span)
  }

  mutating func append(_ key: Span<UInt8>) {
    if isSorted {
      // No key precedes the empty string, so the first key passes.
      isSorted = compareBytes(last.span, key) < 0
      last.removeAll(keepingCapacity: true)
      last.append(copying: key)
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
    var keys = EncodedKeys()
    swap(&keys, &self.keys)
    writer.append(coding, count: keys.count, firstKey: keys.span(at: 0), payload: payload)
    keys.removeAll()
    swap(&keys, &self.keys)
  }

  private func pack() -> (SegmentCoding, [UInt8]) {
    if let payload = UUIDs.encode(keys) { return (.uuids, payload) }
    let plain = FrontCoding.encode(keys)
    var packed: [UInt8] = []
    packed.appendVarint(UInt64(plain.count))
    LZ4.compress(plain, to: &packed)
    return packed.count < plain.count ? (.frontCodedLZ4, packed) : (.frontCoded, plain)
  }
}
