/// Values of a column without NULLs, or the entries of its dictionary.
///
/// Everything that encodes them is compiled for each of the two kinds, of words and of byte arrays.
protocol ValueList: ~Copyable {
  init()

  var count: Int { get }

  func hash(_ index: Int) -> UInt64

  func isSame(_ index: Int, as entry: Int, of entries: borrowing Self) -> Bool

  mutating func append(_ index: Int, of other: borrowing Self)

  /// How many bytes all values have in PLAIN encoding.
  func plainCount(_ type: ParquetType) -> Int

  func writePlain(_ range: Range<Int>, _ type: ParquetType, to page: inout Store<UInt8>)

  /// The encoding of type's that writes differences instead of numbers.
  func writeDelta(_ range: Range<Int>, _ type: ParquetType, to page: inout Store<UInt8>)

  func statistics(_ type: ParquetType) -> Statistics
}

extension Store: ValueList where Element == UInt64 {
  init() { self.init(capacity: 0) }

  @inline(__always)
  func hash(_ index: Int) -> UInt64 { unsafe Words.mixed(base[index]) }

  @inline(__always)
  func isSame(_ index: Int, as entry: Int, of entries: borrowing Self) -> Bool {
    unsafe base[index] == entries.base[entry]
  }

  @inline(__always)
  mutating func append(_ index: Int, of other: borrowing Self) { append(other[index]) }

  func plainCount(_ type: ParquetType) -> Int {
    type == .boolean ? (count + 7) / 8 : count * type.wordByteCount
  }

  func writePlain(_ range: Range<Int>, _ type: ParquetType, to page: inout Store<UInt8>) {
    precondition(range.upperBound <= count)
    switch type.layout {
    case .booleans: unsafe Bits.pack(base + range.lowerBound, range.count, width: 1, to: &page)
    case .days:
      for index in range { page.append(littleEndian: UInt32(truncatingIfNeeded: self[index])) }
    default: for index in range { page.append(littleEndian: self[index]) }
    }
  }

  func writeDelta(_ range: Range<Int>, _ type: ParquetType, to page: inout Store<UInt8>) {
    Delta.write(self, range, isNarrow: type == .date, to: &page)
  }

  func statistics(_ type: ParquetType) -> Statistics { Statistics(of: self, type) }
}

extension ByteArrays: ValueList {
  @inline(__always)
  func hash(_ index: Int) -> UInt64 {
    let range = range(index)
    return unsafe Words.hash(bytes.base + range.lowerBound, range.count)
  }

  @inline(__always)
  func isSame(_ index: Int, as entry: Int, of entries: borrowing Self) -> Bool {
    let (own, other) = (range(index), entries.range(entry))
    let start = unsafe entries.bytes.base + other.lowerBound
    return unsafe own.count == other.count
      && Words.areSame(bytes.base + own.lowerBound, start, own.count)
  }

  @inline(__always)
  mutating func append(_ index: Int, of other: borrowing Self) { unsafe append(other[index]) }

  func plainCount(_ type: ParquetType) -> Int {
    bytes.count + (type.fixedCount == nil ? 4 * count : 0)
  }

  func writePlain(_ range: Range<Int>, _ type: ParquetType, to page: inout Store<UInt8>) {
    guard type.fixedCount == nil else { return writeBytes(range, to: &page) }
    for index in range {
      page.append(littleEndian: UInt32(self.range(index).count))
      writeBytes(index..<index + 1, to: &page)
    }
  }

  /// All lengths, and then all bytes without gaps, which compress better.
  func writeDelta(_ range: Range<Int>, _ type: ParquetType, to page: inout Store<UInt8>) {
    var lengths = Store<UInt64>(capacity: range.count)
    for index in range { lengths.append(UInt64(self.range(index).count)) }
    Delta.write(lengths, 0..<lengths.count, isNarrow: true, to: &page)
    writeBytes(range, to: &page)
  }

  @inline(__always)
  private func writeBytes(_ range: Range<Int>, to page: inout Store<UInt8>) {
    unsafe page.append(bytes.base + start(range.lowerBound), count: byteCount(range))
  }

  func statistics(_ type: ParquetType) -> Statistics { Statistics(of: self, type) }
}
