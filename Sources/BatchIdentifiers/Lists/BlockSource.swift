internal import SystemPackage

enum BlockSource: Sendable {
  /// In memory: each block with its padding.
  case memory([[UInt8]])
  /// In a file, starting at `offset`.
  case file(OpenFile, offset: Int)
  /// Some in memory, the others in a temporary file.
  case spilled(BlockSpill, [BlockSpill.Place])
}

extension PackedIdentifiers {
  /// Calls `body` for each block with some of the positions in a range.
  ///
  /// `body` gets the number of the block, its bytes (followed by readable padding), its segments,
  /// and the requested positions, relative to the first one of the block.
  func forEachBlock(
    in range: Range<Int>,
    _ body: (Int, PaddedBytes, [Segment], Range<Int>) throws(ByteReader.Damage) -> Void
  ) throws(BatchError) {
    guard !range.isEmpty else { return }
    var index = directory.block(holding: range.lowerBound)
    var scratch: [UInt8] = []
    while index < directory.blockCount, directory.positions[index] < range.upperBound {
      let start = directory.positions[index]
      let end = directory.positions[index + 1]
      let part =
        (Swift.max(range.lowerBound, start) - start)..<(Swift.min(range.upperBound, end) - start)
      try withBlock(index, scratch: &scratch) { bytes, segments throws(ByteReader.Damage) in
        try body(index, bytes, segments, part)
      }
      index += 1
    }
  }

  func withBlock<Result>(
    _ index: Int,
    scratch: inout [UInt8],
    _ body: (PaddedBytes, [Segment]) throws(ByteReader.Damage) -> Result
  ) throws(BatchError) -> Result {
    try withBlockBytes(index, scratch: &scratch) { bytes throws(BatchError) in
      do throws(ByteReader.Damage) {
        let segments = try Segment.table(
          of: bytes.bytes,
          keyKind: header.keyKind,
          firstKey: directory.firstKeys[index],
          count: directory.count(ofBlock: index)
        )
        return try body(bytes, segments)
      } catch {
        throw damage(error, block: index)
      }
    }
  }

  /// Calls `body` with the bytes of one block whose checksum is correct.
  func withBlockBytes<Result>(
    _ index: Int,
    scratch: inout [UInt8],
    _ body: (PaddedBytes) throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    let count = directory.byteCount(ofBlock: index)
    switch source {
    case .memory(let blocks):
      let block = blocks[index]
      return try body(PaddedBytes(block.span, count: count))
    case .file(let file, let offset):
      Self.makeRoom(for: count, in: &scratch)
      try file.read(count, into: &scratch, at: offset + directory.offsets[index])
    case .spilled(let spill, let places):
      switch places[index] {
      case .memory(let block): return try body(PaddedBytes(block.span, count: count))
      case .file(let offset):
        Self.makeRoom(for: count, in: &scratch)
        try spill.read(count, into: &scratch, at: offset)
      }
    }
    let block = PaddedBytes(scratch.span, count: count)
    guard XXHash64.hash(block.bytes) == directory.checksums[index] else {
      throw damage(ByteReader.Damage("its checksum does not match"), block: index)
    }
    return try body(block)
  }

  private static func makeRoom(for count: Int, in scratch: inout [UInt8]) {
    guard scratch.count < count + PaddedBytes.padding else { return }
    scratch = [UInt8](repeating: 0, count: Swift.max(count + PaddedBytes.padding, 8192))
  }

  func damage(_ damage: ByteReader.Damage, block index: Int) -> BatchError {
    switch source {
    case .memory:
      BatchError(.damagedFile, "block \(index) is damaged: \(damage.reason)")
    case .file(let file, let offset):
      .damaged(
        "block \(index) at byte \(offset + directory.offsets[index])",
        damage,
        in: file.path
      )
    case .spilled(let spill, _):
      .damaged("block \(index) of a temporary file", damage, in: FilePath(spill.folder ?? ""))
    }
  }
}
