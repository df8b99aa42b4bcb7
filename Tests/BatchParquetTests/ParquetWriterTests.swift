import BatchParquet
import BatchTestSupport
import Testing

/// Files of rows from a program, by the writer and by the parts of a sequence.
@Suite struct ParquetWriterTests {
  private static let types: [ParquetType] = [
    .boolean, .int64, .double, .text, .bytes, .json, .decimal(precision: 9, scale: 2),
    .decimal(precision: 18, scale: 0), .decimal(precision: 30, scale: 30), .date,
    .timestamp(isUTC: true), .uuid,
  ]

  private func value(of type: ParquetType, _ random: inout SeededGenerator) -> ParquetValue {
    if Int.random(in: 0..<5, using: &random) == 0 { return .null }
    let small = Int64.random(in: -999...999, using: &random)
    func bytes(_ count: Int) -> [UInt8] {
      (0..<count).map { _ in .random(in: 0...255, using: &random) }
    }
    switch type {
    case .boolean: return .boolean(Bool.random(using: &random))
    case .int64, .timestamp:
      return .int64(
        Bool.random(using: &random) ? small : .random(in: .min ... .max, using: &random)
      )
    case .date: return .int64(small)
    case .decimal(let precision, _): return precision <= 18 ? .int64(small) : .bytes(bytes(3))
    case .double: return .double(Double(small) / 7)
    case .text, .json:
      return .text(String(repeating: "é\(small)", count: Int.random(in: 0...4, using: &random)))
    case .bytes: return .bytes(bytes(Int.random(in: 0...9, using: &random)))
    case .uuid: return .bytes(bytes(16))
    }
  }

  /// The value as the plain reader shows it; nil where it shows it in another form.
  private func text(_ value: ParquetValue) -> String? {
    switch value {
    case .null: nil
    case .int64(let number): "\(number)"
    case .text(let text): text.utf8.map { String($0, radix: 16) }.joined()
    default: "other"
    }
  }

  @Test(arguments: 0..<24)
  func `a plain reader reads the rows of random columns`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let columns = (0..<Int.random(in: 1...6, using: &random)).map {
      ParquetColumn(name: "column \($0)", type: Self.types.randomElement(using: &random)!)
    }
    let rows = (0..<Int.random(in: 0...200, using: &random)).map { _ in
      columns.map { value(of: $0.type, &random) }
    }
    let size = Int.random(in: 1...4_000, using: &random)
    let compression: ParquetCompression = Bool.random(using: &random) ? .snappy : .none
    var writer = try ParquetWriter(
      columns: columns,
      compression: compression,
      groupByteCount: size,
      createdBy: "batch"
    )
    var bytes: [UInt8] = []
    for row in rows {
      try writer.append(row)
      if Bool.random(using: &random) { bytes += writer.takeBytes() }
    }
    bytes += try writer.finish()
    let told: Comment = "seed \(seed)"
    let read = ParquetTwin(bytes)
    #expect(read.names == columns.map(\.name), told)
    #expect(read.rows.count == rows.count, told)
    for (found, row) in zip(read.rows, rows) {
      for (found, value) in zip(found, row) {
        #expect((found == nil) == (value == .null), told)
        if let text = text(value), text != "other", case .int64 = value {
          #expect(found == text, told)
        }
      }
    }
    // The parts of a sequence are the same file, and no part but the last is small.
    let parts = ParquetParts(
      of: AsyncStream { stream in
        for row in rows { stream.yield(row) }
        stream.finish()
      },
      columns: columns,
      compression: compression,
      groupByteCount: size
    )
    var joined: [UInt8] = []
    var count = 0
    for try await part in parts {
      joined += part
      count += 1
    }
    #expect(joined == bytes && count <= read.groups.count + 1, told)
  }

  @Test func `a row that does not fit is refused, and the others are written`() throws {
    let columns = [
      ParquetColumn(name: "id", type: .uuid),
      ParquetColumn(name: "n", type: .decimal(precision: 3, scale: 1)),
    ]
    let id = ParquetValue.bytes(Array(repeating: 7, count: 16))
    var writer = try ParquetWriter(columns: columns, compression: .none)
    for row in [
      [id], [id, .int64(1_000)], [.bytes([1]), .int64(1)], [.text("x"), .null], [id, .double(1)],
      [id, .null, .null],
    ] as [[ParquetValue]] {
      #expect(throws: ParquetError.self) { try writer.append(row) }
    }
    try writer.append([id, .int64(-999)])
    let read = ParquetTwin(try writer.finish())
    #expect(read.rows.map { $0[1] } == ["-999"])
  }

  @Test(arguments: [
    [], [ParquetColumn(name: "a", type: .text), ParquetColumn(name: "a", type: .int64)],
    [ParquetColumn(name: "a", type: .decimal(precision: 39, scale: 0))],
    [ParquetColumn(name: "a", type: .decimal(precision: 3, scale: 4))],
  ])
  func `columns that no file can have are refused`(columns: [ParquetColumn]) {
    #expect(throws: ParquetError.self) { _ = try ParquetWriter(columns: columns) }
  }

  @Test func `an error of the rows ends the parts`() async throws {
    struct Failure: Error {}
    let rows = AsyncThrowingStream<[ParquetValue], any Error> { stream in
      stream.yield([.int64(1)])
      stream.finish(throwing: Failure())
    }
    let parts = ParquetParts(
      of: rows,
      columns: [ParquetColumn(name: "a", type: .int64)],
      groupByteCount: 1
    )
    var iterator = parts.makeAsyncIterator()
    #expect(try await iterator.next()?.isEmpty == false)
    await #expect(throws: Failure.self) { _ = try await iterator.next() }
    #expect(try await iterator.next() == nil)
  }
}
