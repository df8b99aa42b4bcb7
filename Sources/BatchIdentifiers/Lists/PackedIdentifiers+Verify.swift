extension PackedIdentifiers {
  /// Reads and checks the whole list: checksums, codings, counts, and the order if it is sorted.
  package func verify() throws(BatchError) {
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

  /// Reads the whole list and checks the checksums without decoding it: some milliseconds for a
  /// million keys.
  package func verifyChecksums() throws(BatchError) {
    var scratch: [UInt8] = []
    for index in 0..<blockCount {
      try withBlockBytes(index, scratch: &scratch) { _ throws(BatchError) in }
    }
  }

  private func verify(
    _ segment: Segment,
    of bytes: PaddedBytes,
    buffer: inout [Int64],
    last: inout Int64?
  ) throws(ByteReader.Damage) {
    if segment.coding == .stride || segment.coding == .runs {
      return try verifyRuns(segment, of: bytes, last: &last)
    }
    if buffer.count < segment.count { buffer = [Int64](repeating: 0, count: segment.count) }
    try IntegerDecoder.decode(segment, of: bytes, 0..<segment.count, into: &buffer)
    guard isSorted else { return }
    let keys = buffer.span.extracting(0..<segment.count)
    var isInOrder = last.map { $0 < keys[0] } ?? true
    var previous = keys[0]
    for index in 1..<keys.count {
      isInOrder = isInOrder && previous < keys[index]
      previous = keys[index]
    }
    guard isInOrder else { throw ByteReader.Damage("its keys are not in order") }
    last = keys[segment.count - 1]
  }

  /// Checks segments of any length by their runs, since there may be 2⁴⁸ keys.
  private func verifyRuns(
    _ segment: Segment,
    of bytes: PaddedBytes,
    last: inout Int64?
  ) throws(ByteReader.Damage) {
    let payload = bytes.extracting(segment.payload)
    if segment.coding == .stride {
      var reader = ByteReader(payload.bytes)
      let step = try reader.signedVarint()
      guard reader.isAtEnd else { throw ByteReader.Damage("a segment has the wrong length") }
      guard isSorted else { return }
      try verifyRun(from: segment.firstKey, segment.count, step, segment.isComplemented, &last)
      return
    }
    let runs = try Runs.Reader(segment, payload)
    guard isSorted else { return }
    try runs.forEach { run throws(ByteReader.Damage) in
      guard run.count > 0 else { return true }
      try verifyRun(from: run.first, run.count, 1, segment.isComplemented, &last)
      return true
    }
  }

  private func verifyRun(
    from first: Int64,
    _ count: Int,
    _ step: Int64,
    _ isComplemented: Bool,
    _ last: inout Int64?
  ) throws(ByteReader.Damage) {
    let (distance, isTooFar) = Int64(count - 1).multipliedReportingOverflow(by: step)
    let (end, wraps) = first.addingReportingOverflow(distance)
    let isInOrder = step > 0 && !isTooFar && !wraps && (last.map { $0 < first } ?? true)
    // A sorted list has no complemented segments, since their keys descend.
    guard isInOrder, !isComplemented else { throw ByteReader.Damage("its keys are not in order") }
    last = end
  }

  private func verify(_ keys: EncodedKeys, last: inout [UInt8]) throws(ByteReader.Damage) {
    for index in keys.indices {
      let key = keys.span(at: index)
      guard EncodedKey.ComponentReader.isValid(key) else {
        throw ByteReader.Damage("a key is malformed")
      }
      guard isSorted else { continue }
      guard compareBytes(last.span, key) < 0 else {
        throw ByteReader.Damage("its keys are not in order")
      }
      last.removeAll(keepingCapacity: true)
      last.append(copying: key)
    }
  }
}
