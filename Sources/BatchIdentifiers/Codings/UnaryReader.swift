/// Reads unary numbers in a stretch of bits, one after the other.
struct UnaryReader: BitwiseCopyable, ~Escapable {
  private let source: BitSource
  private var word: UInt64 = 0
  /// The bit at which `word` starts.
  private var start: Int
  private var next: Int
  private let end: Int
  /// The bit behind the last one that was found.
  private var position: Int

  @_lifetime(copy source)
  init(_ source: BitSource, from start: Int, to end: Int) {
    self.source = source
    self.start = start
    next = start
    position = start
    self.end = end
  }

  /// How many zeros stand before the next one.
  @inline(__always)
  mutating func nextZeroCount() throws(ByteReader.Damage) -> Int {
    while word == 0 { try load() }
    let one = start &+ word.trailingZeroBitCount
    word &= word &- 1
    let zeros = one &- position
    position = one &+ 1
    return zeros
  }

  /// Passes over several numbers, and returns their sum.
  @discardableResult
  mutating func skip(_ count: Int) throws(ByteReader.Damage) -> Int {
    let first = position
    var rest = count
    while rest > word.nonzeroBitCount {
      rest &-= word.nonzeroBitCount
      try load()
    }
    for _ in 0..<rest {
      position = start &+ word.trailingZeroBitCount &+ 1
      word &= word &- 1
    }
    return position &- first &- count
  }

  @inline(__always)
  private mutating func load() throws(ByteReader.Damage) {
    guard next < end else { throw ByteReader.Damage("a segment ends too early") }
    start = next
    word = source.fullWord(at: start)
    if end &- start < 64 { word &= BitSource.mask(end &- start) }
    next = start &+ 64
  }
}
