extension IdentifierList {
  /// Reads and checks the whole list: checksums, codings, counts, and the order if it is sorted.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile`, naming the block.
  /// - Complexity: O(n) time, the memory of a few thousand keys.
  public func verify() throws(BatchError) {
    var lastInteger: Int64?
    var lastKey: [UInt8] = []
    var integers = [Int64](repeating: 0, count: SegmentCoding.plainCount)
    var keys = EncodedKeys()
    var decoder = EncodedDecoder()
    try forEachBlock(in: 0..<count) { _, bytes, segments, _ throws(ByteReader.Damage) in
      for segment in segments {
        switch header.keyKind {
        case .integer:
          try verify(segment, of: bytes, buffer: &integers, last: &lastInteger)
        case .encoded:
          keys.removeAll()
          try decoder.decode(segment, of: bytes, into: &keys)
          try verify(keys, last: &lastKey)
        }
      }
    }
  }

  /// Reads the whole list and checks the checksums, without decoding it.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile`, naming the block.
  /// - Complexity: O(n) in the bytes of the list, some milliseconds for a million keys.
  package func verifyChecksums() throws(BatchError) {
    var scratch: [UInt8] = []
    for index in 0..<blockCount {
      try withBlockBytes(index, scratch: &scratch) { _ throws(BatchError) in }
    }
  }

  private func verify(
    _ segment: Segment,
    of bytes: UnsafeRawBufferPointer,
    buffer: inout [Int64],
    last: inout Int64?
  ) throws(ByteReader.Damage) {
    if segment.count > buffer.count {
      // A long run: its first and last keys tell whether it wraps around.
      try verifyRun(segment, of: bytes, last: &last)
      return
    }
    try buffer.withMutableElements { output throws(ByteReader.Damage) in
      guard let base = output.baseAddress else { return }
      try IntegerDecoder.decode(segment, of: bytes, 0..<segment.count, into: base)
      guard isSorted else { return }
      for index in 0..<segment.count {
        if let last, last >= output[index] { throw ByteReader.Damage("its keys are not in order") }
        last = output[index]
      }
    }
  }

  private func verifyRun(
    _ segment: Segment,
    of bytes: UnsafeRawBufferPointer,
    last: inout Int64?
  ) throws(ByteReader.Damage) {
    var start = 0
    var buffer = [Int64](repeating: 0, count: SegmentCoding.plainCount)
    while start < segment.count {
      let end = Swift.min(start + buffer.count, segment.count)
      try buffer.withMutableElements { output throws(ByteReader.Damage) in
        guard let base = output.baseAddress else { return }
        try IntegerDecoder.decode(segment, of: bytes, start..<end, into: base)
        guard isSorted else { return }
        for index in 0..<(end - start) {
          if let last, last >= output[index] {
            throw ByteReader.Damage("its keys are not in order")
          }
          last = output[index]
        }
      }
      start = end
    }
  }

  private func verify(_ keys: EncodedKeys, last: inout [UInt8]) throws(ByteReader.Damage) {
    try keys.forEachKey { key throws(ByteReader.Damage) in
      guard EncodedKey.ComponentReader.isValid(key) else {
        throw ByteReader.Damage("a key is malformed")
      }
      guard isSorted else { return }
      guard last.withUnsafeBytes({ compareBytes($0, key) < 0 }) else {
        throw ByteReader.Damage("its keys are not in order")
      }
      last.removeAll(keepingCapacity: true)
      last.append(contentsOf: key)
    }
  }
}
