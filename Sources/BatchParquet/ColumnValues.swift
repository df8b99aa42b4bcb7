/// The values of a column in a row group, as they are appended.
struct ColumnValues: ~Copyable {
  let type: ParquetType
  private let layout: ParquetType.Layout
  private let fixedCount: Int?
  /// One for each row, or zero if it is NULL.
  private var levels = Store<UInt8>()
  /// Either has the values that are not NULL.
  private(set) var words = Store<UInt64>()
  private(set) var arrays = ByteArrays()

  init(_ type: ParquetType) {
    self.type = type
    layout = type.layout
    fixedCount = type.fixedCount
  }

  var rowCount: Int { levels.count }
  var valueCount: Int { words.count + arrays.count }
  var isOfArrays: Bool { layout == .arrays }

  @inline(__always)
  mutating func appendNull() { levels.append(0) }

  @inline(__always)
  mutating func append(_ word: UInt64, as expected: ParquetType.Layout) {
    precondition(layout == expected || (layout == .days && expected == .integers && isDay(word)))
    levels.append(1)
    words.append(word)
  }

  private func isDay(_ word: UInt64) -> Bool { Int32(exactly: Int64(bitPattern: word)) != nil }

  @inline(__always)
  mutating func append(_ array: UnsafeRawBufferPointer) {
    precondition(layout == .arrays)
    levels.append(1)
    if let fixedCount, fixedCount != array.count {
      // Shorter numbers are given their sign's bytes; no UUID is shorter.
      precondition(type != .uuid && array.count > 0 && array.count < fixedCount)
      unsafe arrays.append(array, width: fixedCount, filler: array[0] < 0x80 ? 0 : 0xFF)
    } else {
      unsafe arrays.append(array)
    }
  }

  /// Keeps the memory.
  mutating func removeAll() {
    levels.removeAll()
    words.removeAll()
    arrays.removeAll()
  }

  /// The rows and values of a page.
  typealias Page = (rows: Range<Int>, values: Range<Int>)

  /// Rows in parts of about 1 MiB; one part at least.
  ///
  /// Indices of a dictionary need less than the eight bytes of other numbers.
  func pages(ofIndices: Bool) -> [Page] {
    let (rowLimit, byteLimit) = (131_072, 1 << 20)
    let byteCount = ofIndices ? 0 : arrays.bytes.count + 4 * arrays.count
    if rowCount <= rowLimit, byteCount <= byteLimit { return [(0..<rowCount, 0..<valueCount)] }
    var pages: [Page] = []
    var (firstRow, firstValue, value, bytes) = (0, 0, 0, 0)
    for row in 0..<rowCount {
      let level = Int(levels[row])
      let size = level > 0 && byteCount > 0 ? arrays.range(value).count + 4 : 0
      if row - firstRow == rowLimit || (row > firstRow && bytes + size > byteLimit) {
        pages.append((firstRow..<row, firstValue..<value))
        (firstRow, firstValue, bytes) = (row, value, 0)
      }
      bytes += size
      value += level
    }
    pages.append((firstRow..<rowCount, firstValue..<valueCount))
    return pages
  }

  /// The definition levels of a page after their size.
  func writeLevels(_ page: Page, to target: inout Store<UInt8>) {
    precondition(page.rows.upperBound <= rowCount)
    var runs = Store<UInt8>()
    if page.values.count == page.rows.count {
      Bits.writeRun(UInt8(1), page.rows.count, width: 1, to: &runs)
    } else {
      let start = unsafe levels.base + page.rows.lowerBound
      unsafe Bits.writeHybrid(start, page.rows.count, width: 1, to: &runs)
    }
    target.append(littleEndian: UInt32(runs.count))
    target.append(runs)
  }
}
