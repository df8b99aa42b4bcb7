internal import CLZ4

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
    let plain = FrontCoding.encode(keys)
    var packed: [UInt8] = []
    packed.appendVarint(UInt64(plain.count))
    packed.append(contentsOf: LZ4.compress(plain))
    let isPacked = packed.count < plain.count
    keys.withBytes(at: 0) { firstKey in
      (isPacked ? packed : plain).withUnsafeBytes { payload in
        writer.append(
          isPacked ? .frontCodedLZ4 : .frontCoded,
          count: keys.count,
          firstKey: firstKey,
          payload: payload
        )
      }
    }
    keys.removeAll()
  }
}

/// LZ4 blocks, by the system's library.
enum LZ4 {
  static func compress(_ bytes: [UInt8]) -> [UInt8] {
    let bound = Int(LZ4_compressBound(Int32(bytes.count)))
    return [UInt8](unsafeUninitializedCapacity: bound) { buffer, size in
      bytes.withUnsafeBytes { source in
        let count = LZ4_compress_default(
          source.bindMemory(to: CChar.self).baseAddress,
          UnsafeMutableRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self),
          Int32(bytes.count),
          Int32(bound)
        )
        size = max(0, Int(count))
      }
    }
  }
}
