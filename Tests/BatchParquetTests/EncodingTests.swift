import BatchTestSupport
import Testing

@testable import BatchParquet

@Suite struct EncodingTests {
  private func hybrid(_ numbers: [UInt32], width: Int) -> [UInt8] {
    var page = Store<UInt8>()
    unsafe numbers.withUnsafeBufferPointer { buffer in
      if let start = buffer.baseAddress {
        unsafe Bits.writeHybrid(start, buffer.count, width: width, to: &page)
      }
    }
    return page.array
  }

  private func delta(_ numbers: [Int64], isNarrow: Bool = false) -> [UInt8] {
    var page = Store<UInt8>()
    let words = Store(numbers.map { UInt64(bitPattern: $0) })
    Delta.write(words, 0..<numbers.count, isNarrow: isNarrow, to: &page)
    return page.array
  }

  /// The example of https://parquet.apache.org/docs/file-format/data-pages/encodings/.
  @Test func `bits are packed lowest first, as in the format's example`() {
    #expect(hybrid([0, 1, 2, 3, 4, 5, 6, 7], width: 3) == [3, 0x88, 0xC6, 0xFA])
  }

  @Test func `equal numbers are written as runs`() {
    #expect(hybrid(Array(repeating: 5, count: 100), width: 3) == [0xC8, 0x01, 5])
    #expect(hybrid(Array(repeating: 300, count: 8), width: 9) == [16, 0x2C, 0x01])
  }

  @Test(arguments: [1, 2, 3, 7, 8, 9, 15, 16, 17, 20, 31, 32])
  func `a plain reader reads runs and packed numbers of any width`(width: Int) {
    var random = SeededGenerator(seed: UInt64(width))
    for _ in 0..<200 {
      var numbers: [UInt32] = []
      for _ in 0..<Int.random(in: 1...12, using: &random) {
        let number = UInt32(UInt64.random(in: 0..<1 << UInt64(width), using: &random))
        let count = [1, 2, 7, 8, 9, 40, 300].randomElement(using: &random) ?? 1
        numbers += Array(repeating: number, count: count)
      }
      var twin = Twin(hybrid(numbers, width: width))
      #expect(twin.hybrid(numbers.count, width: width) == numbers.map(UInt64.init))
      #expect(twin.position == twin.bytes.count)
    }
  }

  @Test func `the width of indices holds the largest index`() {
    #expect([0, 1, 2, 3, 4, 5, 256, 257, 65_537].map(Bits.width) == [1, 1, 1, 2, 2, 3, 8, 9, 17])
  }

  /// Examples of https://parquet.apache.org/docs/file-format/data-pages/encodings/.
  @Test func `differences are written as in the format's examples`() {
    let start: [UInt8] = [0x80, 0x01, 4]
    #expect(delta([1, 2, 3, 4, 5]) == start + [5, 2, 2, 0, 0, 0, 0])
    // Minus two is the least; then twice five, or zero, is left of each difference.
    #expect(
      delta([7, 5, 3, 1, 2, 3, 4, 5])
        == start + [8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b1111_1111 >> 2, 0, 0, 0, 0, 0, 0]
    )
    #expect(delta([]) == start + [0, 0])
    #expect(delta([-3]) == start + [1, 5])
  }

  @Test(arguments: [false, true])
  func `a plain reader reads differences of any numbers`(isNarrow: Bool) {
    var random = SeededGenerator(seed: 3)
    let extremes: [Int64] = isNarrow ? [.init(Int32.min), .init(Int32.max)] : [.min, .max]
    for round in 0..<300 {
      let count = Int.random(in: 1...400, using: &random)
      let spread = Int64(1) << Int64.random(in: 0...(isNarrow ? 31 : 62), using: &random)
      let numbers = (0..<count).map { _ in
        round % 3 == 0 && Bool.random(using: &random)
          ? extremes.randomElement(using: &random) ?? 0
          : Int64.random(in: -spread..<spread, using: &random)
      }
      var twin = Twin(delta(numbers, isNarrow: isNarrow))
      #expect(twin.delta(isNarrow: isNarrow) == numbers)
      #expect(twin.position == twin.bytes.count)
    }
  }

  @Test func `a plain reader reads which values are NULL, for any rows of a page`() {
    var random = SeededGenerator(seed: 4)
    for _ in 0..<300 {
      var values = ColumnValues(.boolean)
      var rows: [UInt64] = []
      for _ in 0..<Int.random(in: 0...8, using: &random) {
        let kind = Int.random(in: 0...2, using: &random)
        for _ in 0..<([1, 7, 8, 63, 64, 65, 130, 700].randomElement(using: &random) ?? 1) {
          let isValid = kind == 2 ? Bool.random(using: &random) : kind == 1
          if isValid { values.append(1, as: .booleans) } else { values.appendNull() }
          rows.append(isValid ? 1 : 0)
        }
      }
      let start = Int.random(in: 0...rows.count, using: &random)
      let end = Int.random(in: start...rows.count, using: &random)
      var page = Store<UInt8>()
      let count = Int(rows[start..<end].reduce(0, +))
      values.writeLevels((start..<end, 0..<count), to: &page)
      var twin = Twin(Array(page.array.dropFirst(4)))
      #expect(twin.hybrid(end - start, width: 1) == Array(rows[start..<end]))
      #expect(twin.position == twin.bytes.count && page[0] == UInt8(twin.bytes.count & 0xFF))
    }
  }

  @Test func `a plain reader reads what is compressed with Snappy`() {
    var random = SeededGenerator(seed: 5)
    for round in 0..<120 {
      let count =
        [0, 1, 3, 15, 16, 17, 100, 1000, 65_535, 65_536, 65_537, 200_000]
        .randomElement(using: &random) ?? 0
      let letters = UInt8([0, 1, 3, 255].randomElement(using: &random) ?? 0)
      var bytes: [UInt8] = []
      while bytes.count < count {
        if round % 2 == 0, bytes.count > 10, Bool.random(using: &random) {
          let start = Int.random(in: max(0, bytes.count - 3000)..<bytes.count, using: &random)
          let end = min(bytes.count, start + Int.random(in: 1...200, using: &random))
          bytes += Array(bytes[start..<end])
        } else {
          bytes.append(UInt8.random(in: 0...letters, using: &random))
        }
      }
      var page = Store<UInt8>()
      var compressed = Store<UInt8>()
      page.append(bytes)
      ParquetCompression.snappy.compress(page, to: &compressed)
      var twin = Twin(compressed.array)
      #expect(twin.snappy() == bytes)
      if letters == 0, count > 1000 { #expect(compressed.count < count / 15) }
    }
  }
}
