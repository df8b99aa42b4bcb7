import BatchIdentifiers

/// Unpacks DEFLATE (RFC 1951, without zlib's frame), which Core Data uses to store a model.
///
/// The bytes are untrusted: throws if they are invalid or unpack to more than a limit.
struct Inflation {
  private let bytes: [UInt8]
  private let limit: Int
  private var position = 0
  private var buffer: UInt32 = 0
  private var bufferedBits = 0
  private var output: [UInt8] = []

  static func unpack(
    _ bytes: [UInt8],
    atMost limit: Int
  ) throws(ByteReader.Damage) -> [UInt8] {
    var inflation = Inflation(bytes: bytes, limit: limit)
    while try inflation.unpackBlock() {}
    return inflation.output
  }

  private init(bytes: [UInt8], limit: Int) {
    self.bytes = bytes
    self.limit = limit
  }

  /// Unpacks a block; false if it was the last.
  private mutating func unpackBlock() throws(ByteReader.Damage) -> Bool {
    let isLast = try bits(1) == 1
    switch try bits(2) {
    case 0: try copyStored()
    case 1: try unpack(.fixedLengths, .fixedDistances)
    case 2:
      let (lengths, distances) = try readCodes()
      try unpack(lengths, distances)
    default: throw .init("a block is of no known kind")
    }
    return !isLast
  }

  private mutating func bits(_ count: Int) throws(ByteReader.Damage) -> Int {
    while bufferedBits < count {
      guard position < bytes.count else { throw .init("it ends too early") }
      buffer |= UInt32(bytes[position]) << UInt32(bufferedBits)
      position += 1
      bufferedBits += 8
    }
    let value = buffer & (1 << UInt32(count) - 1)
    buffer >>= UInt32(count)
    bufferedBits -= count
    return Int(value)
  }

  private mutating func copyStored() throws(ByteReader.Damage) {
    (buffer, bufferedBits) = (0, 0)
    let count = try bits(16)
    guard try bits(16) == ~count & 0xffff else { throw .init("a length is wrong") }
    guard count <= bytes.count - position, count <= limit - output.count else {
      throw .init("a block is too long")
    }
    output += bytes[position..<(position + count)]
    position += count
  }

  private mutating func unpack(
    _ lengths: HuffmanCode,
    _ distances: HuffmanCode
  ) throws(ByteReader.Damage) {
    while true {
      let symbol = try symbol(of: lengths)
      if symbol == 256 { return }
      guard output.count < limit else { throw .init("it is too long") }
      if symbol < 256 {
        output.append(UInt8(symbol))
        continue
      }
      guard symbol - 257 < Self.lengths.count else { throw .init("a length is wrong") }
      let length = Self.lengths[symbol - 257]
      let count = try length.base + bits(length.extraBits)
      let place = try self.symbol(of: distances)
      guard place < Self.distances.count else { throw .init("a distance is wrong") }
      let distance = try Self.distances[place].base + bits(Self.distances[place].extraBits)
      guard distance <= output.count, count <= limit - output.count else {
        throw .init("a distance or a length is wrong")
      }
      // A copy may overlap its own output.
      for _ in 0..<count { output.append(output[output.count - distance]) }
    }
  }

  private mutating func symbol(of code: HuffmanCode) throws(ByteReader.Damage) -> Int {
    var (word, first, index) = (0, 0, 0)
    for count in code.counts {
      word |= try bits(1)
      if word - first < count { return code.symbols[index + word - first] }
      index += count
      first = (first + count) << 1
      word <<= 1
    }
    throw .init("a code stands for nothing")
  }

  private mutating func readCodes() throws(ByteReader.Damage) -> (HuffmanCode, HuffmanCode) {
    let (lengthCount, distanceCount) = (try bits(5) + 257, try bits(5) + 1)
    var widths = [Int](repeating: 0, count: 19)
    for place in Self.widthOrder.prefix(try bits(4) + 4) { widths[place] = try bits(3) }
    let widthCode = try HuffmanCode(widths)
    widths = []
    while widths.count < lengthCount + distanceCount {
      let symbol = try symbol(of: widthCode)
      switch symbol {
      case 16:
        guard let last = widths.last else { throw .init("there is nothing to repeat") }
        widths += repeatElement(last, count: try bits(2) + 3)
      case 17: widths += repeatElement(0, count: try bits(3) + 3)
      case 18: widths += repeatElement(0, count: try bits(7) + 11)
      default: widths.append(symbol)
      }
    }
    guard widths.count == lengthCount + distanceCount else { throw .init("a code is too long") }
    return (
      try HuffmanCode(Array(widths[..<lengthCount])), try HuffmanCode(Array(widths[lengthCount...]))
    )
  }

  private static let widthOrder = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
  ]

  private typealias Step = (base: Int, extraBits: Int)

  private static let lengths: [Step] = steps(from: 3, each: [8, 4, 4, 4, 4, 4]) + [(258, 0)]
  private static let distances: [Step] = steps(
    from: 1,
    each: [4] + [Int](repeating: 2, count: 13)
  )

  /// Numbers in groups, each with one more extra bit than the previous one.
  private static func steps(from start: Int, each counts: [Int]) -> [Step] {
    var steps: [Step] = []
    var base = start
    for (extraBits, count) in counts.enumerated() {
      for _ in 0..<count {
        steps.append((base, extraBits))
        base += 1 << extraBits
      }
    }
    return steps
  }
}

/// A Huffman code of DEFLATE: the number of codes of each length, and their symbols.
private struct HuffmanCode {
  let counts: [Int]
  let symbols: [Int]

  /// Makes the code with these lengths, one per symbol; 0 if a symbol does not occur.
  init(_ widths: [Int]) throws(ByteReader.Damage) {
    var counts = [Int](repeating: 0, count: 16)
    for width in widths { counts[width] += 1 }
    var left = 1
    for width in 1...15 {
      left = left << 1 - counts[width]
      guard left >= 0 else { throw .init("a code has too many words") }
    }
    self.counts = Array(counts[1...])
    symbols = (1...15).flatMap { width in widths.indices.filter { widths[$0] == width } }
  }

  private init(fixed widths: [Int]) {
    counts = (1...15).map { width in widths.count { $0 == width } }
    symbols = (1...15).flatMap { width in widths.indices.filter { widths[$0] == width } }
  }

  static let fixedLengths = HuffmanCode(
    fixed: [Int](repeating: 8, count: 144) + [Int](repeating: 9, count: 112)
      + [Int](repeating: 7, count: 24) + [Int](repeating: 8, count: 8)
  )
  static let fixedDistances = HuffmanCode(fixed: [Int](repeating: 5, count: 30))
}
