/// Reads consecutive unary numbers in a stretch of bits.
///
/// The bits are passed with each number, so this stays in registers, unlike a type that contains a
/// span.
struct UnaryReader {
  private var word: UInt64 = 0
  /// The bit where `word` starts.
  private var start: Int
  private var next: Int
  private let end: Int
  /// The bit after the last one that was found.
  private var position: Int

  init(from start: Int, to end: Int) {
    self.start = start
    next = start
    position = start
    self.end = end
  }

  /// Returns the number of zeros before the next one.
  @inline(__always)
  mutating func nextZeroCount(in source: BitSource) throws(ByteReader.Damage) -> Int {
    while word == 0 { try load(source) }
    let one = start &+ word.trailingZeroBitCount
    word &= word &- 1
    let zeros = one &- position
    position = one &+ 1
    return zeros
  }

  @discardableResult
  mutating func skip(_ count: Int, in source: BitSource) throws(ByteReader.Damage) -> Int {
    let first = position
    var rest = count
    while rest > word.nonzeroBitCount {
      rest &-= word.nonzeroBitCount
      try load(source)
    }
    for _ in 0..<rest {
      position = start &+ word.trailingZeroBitCount &+ 1
      word &= word &- 1
    }
    return position &- first &- count
  }

  @inline(__always)
  private mutating func load(_ source: BitSource) throws(ByteReader.Damage) {
    guard next < end else { throw ByteReader.Damage("a segment ends too early") }
    start = next
    word = source.fullWord(at: start)
    if end &- start < 64 { word &= BitSource.mask(end &- start) }
    next = start &+ 64
  }
}
