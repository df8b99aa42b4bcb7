import BatchTestSupport
import Testing

@testable import BatchParquet

@Suite struct FooterTests {
  let columns = [
    ParquetColumn(name: "id", type: .int64), ParquetColumn(name: "name", type: .text),
  ]

  private func rowGroup(_ rows: Int) -> [UInt8] {
    var group = ParquetRowGroup(columns: columns, compression: .lz4)
    for row in 0..<rows {
      group.append(Int64(row), to: 0)
      if row % 3 == 0 {
        group.appendNull(to: 1)
      } else {
        group.append(bytes: "name \(row % 7)".utf8.span, to: 1)
      }
    }
    #expect(group.rowCount == rows)
    return group.encode()
  }

  private func footer(
    _ body: [UInt8],
    columns: [ParquetColumn]? = nil
  ) throws -> (bytes: [UInt8], rows: Int, read: Int) {
    let file = ParquetFile(columns: columns ?? self.columns, createdBy: "test")
    var (bytes, read) = ([UInt8](), 0)
    let rows = try file.writeFooter(bodyByteCount: body.count) { offset, count in
      read += count
      return Array(body[offset..<offset + count])
    } write: {
      bytes += $0
    }
    return (bytes, rows, read)
  }

  @Test func `a footer is made from descriptions alone`() throws {
    let body = ParquetFile.header + rowGroup(100_000) + rowGroup(0) + rowGroup(200_000)
    let (bytes, rows, read) = try footer(body)
    #expect(rows == 300_000)
    #expect(read < 1000 && body.count > read)
    #expect(bytes.suffix(4) == ParquetFile.header)
    let length = bytes.dropLast(4).suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    #expect(length == bytes.count - 8)
  }

  @Test func `a row group is the same however values were appended`() {
    var group = ParquetRowGroup(columns: columns, compression: .lz4)
    for row in 0..<100 { group.append(Int64(row), to: 0) }
    for row in 0..<100
    where row % 3 != 0
      || {
        group.appendNull(to: 1); return false
      }()
    {
      group.append(bytes: "name \(row % 7)".utf8.span, to: 1)
    }
    #expect(group.byteCount > 800)
    #expect(group.encode() == rowGroup(100))
    #expect(group.rowCount == 0 && group.byteCount == 0)
  }

  @Test func `a Parquet file may have no row group`() throws {
    #expect(try footer(ParquetFile.header).rows == 0)
  }

  @Test func `every damaged bit of a description is noticed`() throws {
    let first = rowGroup(50)
    let body = ParquetFile.header + first + rowGroup(20)
    for end in [body.count, 4 + first.count] {
      let count = 16 + Int(body[end - 16])
      for offset in end - count..<end {
        for bit in 0..<8 {
          var damaged = body
          damaged[offset] ^= 1 << UInt8(bit)
          #expect(throws: ParquetError.damagedRowGroup(end: end)) { try footer(damaged) }
        }
      }
    }
  }

  @Test func `a body that was cut anywhere but after a row group is noticed`() throws {
    let first = rowGroup(50)
    let body = ParquetFile.header + first + rowGroup(20)
    for count in 0..<body.count where count != 4 && count != 4 + first.count {
      #expect(throws: ParquetError.damagedRowGroup(end: count)) {
        try footer(Array(body[..<count]))
      }
    }
    #expect(try footer(Array(body[..<(4 + first.count)])).rows == 50)
  }

  /// Descriptions that are wrong although their hashes are right must not trap either.
  @Test func `a description that is wrong in any way does not trap`() {
    var random = SeededGenerator(seed: 1)
    let body = ParquetFile.header + rowGroup(50)
    let start = body.count - 16 - Int(body[body.count - 16])
    for _ in 0..<5000 {
      var damaged = body
      for _ in 0...Int.random(in: 0...3, using: &random) {
        let offset = Int.random(in: start..<body.count - 16, using: &random)
        damaged[offset] =
          [0, 1, 0x7F, 0xFF, UInt8.random(in: 0...255, using: &random)]
          .randomElement(using: &random) ?? 0
      }
      var sealed = Store<UInt8>()
      sealed.append(Array(damaged[start..<body.count - 8]))
      sealed.append(littleEndian: unsafe Words.hash(sealed.base, sealed.count))
      damaged.replaceSubrange(start..., with: sealed.array)
      do { _ = try footer(damaged) } catch { #expect(error is ParquetError) }
    }
  }

  @Test func `a row group of other columns is refused`() throws {
    let body = ParquetFile.header + rowGroup(5)
    var others = columns
    others[1] = ParquetColumn(name: "name", type: .json)
    #expect(throws: ParquetError.otherColumns(end: body.count)) {
      try footer(body, columns: others)
    }
  }
}
