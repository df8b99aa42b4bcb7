/// Collects segments into blocks, and blocks into the body of a list.
///
/// A block is read from a file as a unit and has its own checksum.
struct BlockWriter: Sendable {
  /// A block ends when its segments have this many bytes.
  static let blockByteCount = 8192

  let keyKind: IdentifierList.KeyKind
  private var blocks: [[UInt8]] = []
  /// Nil to keep all blocks in memory.
  private let spill: BlockSpill?
  private var places: [BlockSpill.Place] = []
  private(set) var directory = BlockDirectory()
  private var table: [UInt8] = []
  /// The positions of the last segment's entry and length in the table.
  private var lastEntry = (tag: 0, length: 0..<0)
  private var payloads: [UInt8] = []
  private var segmentCount = 0
  private var keyCount = 0
  private var firstKey: Int64 = 0
  private var lastFirstKey: Int64 = 0
  private var lastDistance: Int64 = 0
  private var lastLength = 0
  private var separator: [UInt8] = []

  init(keyKind: IdentifierList.KeyKind, spill: BlockSpill?) {
    self.keyKind = keyKind
    self.spill = spill
  }

  var source: BlockSource { spill.map { .spilled($0, places) } ?? .memory(blocks) }

  /// `firstKey` is the key as stored.
  mutating func append(
    _ coding: SegmentCoding,
    isComplemented: Bool,
    count: Int,
    firstKey: Int64,
    payload: [UInt8]
  ) {
    let isFirst = segmentCount == 0
    if isFirst { self.firstKey = firstKey }
    appendEntry(coding, isComplemented: isComplemented, count: count, length: payload.count)
    if !isFirst {
      // Neighbouring segments are similar, so differences are shorter.
      let distance = firstKey &- lastFirstKey
      table.appendSignedVarint(distance &- lastDistance)
      lastDistance = distance
    }
    lastFirstKey = firstKey
    finishSegment(count: count, payload: payload)
  }

  mutating func append(
    _ coding: SegmentCoding,
    count: Int,
    firstKey: Span<UInt8>,
    payload: [UInt8]
  ) {
    if segmentCount == 0 { separator = [UInt8](copying: firstKey) }
    appendEntry(coding, isComplemented: false, count: count, length: payload.count)
    finishSegment(count: count, payload: payload)
  }

  private mutating func appendEntry(
    _ coding: SegmentCoding,
    isComplemented: Bool,
    count: Int,
    length: Int
  ) {
    var tag = coding.rawValue
    if isComplemented { tag |= Segment.Tag.isComplemented }
    if count == SegmentCoding.plainCount { tag |= Segment.Tag.isPlainCount }
    lastEntry.tag = table.count
    table.append(tag)
    if count != SegmentCoding.plainCount { table.appendVarint(UInt64(count)) }
    let start = table.count
    table.appendSignedVarint(Int64(length - lastLength))
    lastEntry.length = start..<table.count
    lastLength = length
  }

  private mutating func finishSegment(count: Int, payload: [UInt8]) {
    payloads.append(contentsOf: payload)
    segmentCount += 1
    keyCount += count
    if payloads.count >= Self.blockByteCount || segmentCount == Segment.maximumCountOfBlock {
      finishBlock()
    }
  }

  mutating func finishBlock() {
    guard segmentCount > 0 else { return }
    // The last segment has the rest of the block, so its length is omitted.
    table[lastEntry.tag] |= Segment.Tag.isLast
    table.removeSubrange(lastEntry.length)
    let count = table.count + payloads.count
    // Reserves exactly the size needed, since the list keeps the block.
    var block: [UInt8] = []
    block.reserveCapacity(count + PaddedBytes.padding)
    block += table
    block += payloads
    block.appendZeros(PaddedBytes.padding)
    directory.append(
      byteCount: count,
      count: keyCount,
      firstKey: firstKey,
      separator: separator,
      checksum: XXHash64.hash(block.span.extracting(0..<count))
    )
    if let spill {
      places.append(spill.keep(block, count: count))
    } else {
      blocks.append(block)
    }
    table.removeAll(keepingCapacity: true)
    payloads.removeAll(keepingCapacity: true)
    separator.removeAll(keepingCapacity: true)
    segmentCount = 0
    keyCount = 0
    lastDistance = 0
    lastLength = 0
  }

  /// Removes the parts that only a sorted list needs.
  mutating func removeSeparators() {
    directory.removeSeparators()
  }
}
