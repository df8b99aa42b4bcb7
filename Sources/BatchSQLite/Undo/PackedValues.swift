import BatchRuns
import BatchIdentifiers

/// Packs the values of rows column by column, in few bytes.
///
/// A column consists of:
/// - its kinds, each with its number of rows;
/// - its integers: the shortest form, then a varint for each: unchanged, as the difference to the
///   previous integer, or as the difference to the value at the same place in another block;
/// - its reals: the number of decimals that represents them exactly, then as integers; or their
///   bits;
/// - the lengths of its texts and blobs, then their bytes.
///
/// All of it is compressed with LZ4 if that makes it smaller.
enum PackedValues {
  private enum IntegerForm: UInt8, CaseIterable {
    case plain, steps, differences
  }

  /// Marks reals that a few decimals do not represent exactly.
  private static let bits: UInt8 = 0xff
  private static let mostDecimals = 6

  // MARK: Packing

  /// Packs values; `reference` contains values known when unpacking, with a row for each row of
  /// `block`.
  static func pack(_ block: ValueBlock, relativeTo reference: ValueBlock? = nil) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(block.count * block.columnCount * 2 + block.bytes.count)
    for column in 0..<block.columnCount {
      pack(column, of: block, relativeTo: reference, to: &bytes)
    }
    var packed: [UInt8] = []
    packed.appendVarint(UInt64(bytes.count))
    let start = packed.count
    // LZ4 accepts at most 2 GB at a time.
    if bytes.count < 1 << 30 { LZ4.compress(bytes, to: &packed) }
    if packed.count == start || packed.count - start >= bytes.count {
      packed.removeLast(packed.count - start)
      packed += bytes
    }
    return packed
  }

  private static func pack(
    _ column: Int,
    of block: ValueBlock,
    relativeTo reference: ValueBlock?,
    to bytes: inout [UInt8]
  ) {
    var integers: [(row: Int, value: Int64)] = []
    var reals: [Double] = []
    var contents: [Int] = []
    var row = 0
    while row < block.count {
      let kind = block.kind(row, column)
      let first = row
      while row < block.count, block.kind(row, column) == kind {
        switch kind {
        case .integer: integers.append((row, block.word(row, column)))
        case .real: reals.append(block.real(row, column))
        case .text, .blob: contents.append(row)
        case .null, .unset: break
        }
        row += 1
      }
      bytes.append(kind.rawValue)
      bytes.appendVarint(UInt64(row - first))
    }
    if !integers.isEmpty {
      pack(integers, to: &bytes) { row in
        guard let reference, reference.kind(row, column) == .integer else { return 0 }
        return reference.word(row, column)
      }
    }
    if !reals.isEmpty { pack(reals, to: &bytes) }
    for row in contents { bytes.appendVarint(UInt64(block.bytes(row, column).count)) }
    for row in contents { bytes += block.bytes(row, column) }
  }

  private static func pack(
    _ integers: [(row: Int, value: Int64)],
    to bytes: inout [UInt8],
    _ reference: (Int) -> Int64
  ) {
    var costs = IntegerForm.allCases.map { _ in 0 }
    forEachNumber(integers, reference) { plain, step, difference in
      costs[0] += plain.varintByteCount
      costs[1] += step.varintByteCount
      costs[2] += difference.varintByteCount
    }
    // Among forms of equal length, steps and differences repeat more often, and so compress better.
    let best = IntegerForm.allCases.min { costs[Int($0.rawValue)] < costs[Int($1.rawValue)] }
    let least = costs[Int(best?.rawValue ?? 0)]
    let form = IntegerForm.allCases.last { costs[Int($0.rawValue)] == least } ?? .plain
    bytes.append(form.rawValue)
    forEachNumber(integers, reference) { plain, step, difference in
      switch form {
      case .plain: bytes.appendVarint(plain)
      case .steps: bytes.appendVarint(step)
      case .differences: bytes.appendVarint(difference)
      }
    }
  }

  @inline(__always)
  private static func forEachNumber(
    _ integers: [(row: Int, value: Int64)],
    _ reference: (Int) -> Int64,
    _ body: (_ plain: UInt64, _ step: UInt64, _ difference: UInt64) -> Void
  ) {
    var previous: Int64 = 0
    for (row, value) in integers {
      body(value.zigzag, (value &- previous).zigzag, (value &- reference(row)).zigzag)
      previous = value
    }
  }

  private static func pack(_ reals: [Double], to bytes: inout [UInt8]) {
    for decimals in 0...mostDecimals {
      guard let integers = integers(of: reals, decimals) else { continue }
      bytes.append(UInt8(decimals))
      return pack(integers, to: &bytes) { _ in 0 }
    }
    bytes.append(bits)
    for real in reals {
      for shift in stride(from: 0, to: 64, by: 8) {
        bytes.append(UInt8(truncatingIfNeeded: real.bitPattern >> UInt64(shift)))
      }
    }
  }

  /// The reals times a power of ten, as integers; nil if these do not represent the reals exactly.
  private static func integers(of reals: [Double], _ decimals: Int) -> [(row: Int, value: Int64)]? {
    let scale = scale(decimals)
    var integers: [(row: Int, value: Int64)] = []
    integers.reserveCapacity(reals.count)
    for real in reals {
      // Below 2^53, every integer is a real, so a division has the same result everywhere.
      guard let integer = Int64(exactly: (real * scale).rounded()),
        integer.magnitude < 1 << 53,
        (Double(integer) / scale).bitPattern == real.bitPattern
      else { return nil }
      integers.append((0, integer))
    }
    return integers
  }

  private static func scale(_ decimals: Int) -> Double {
    (0..<decimals).reduce(1) { scale, _ in scale * 10 }
  }

  // MARK: Unpacking

  /// Unpacks values that were packed relative to `reference`.
  ///
  /// - Throws: `ByteReader.Damage` if the bytes are not packed values.
  static func unpack(
    _ packed: Span<UInt8>,
    columns: Int,
    count: Int,
    relativeTo reference: ValueBlock? = nil
  ) throws(ByteReader.Damage) -> ValueBlock {
    var header = ByteReader(packed)
    let byteCount = try header.count(atMost: Int(UInt32.max))
    let content = packed.extracting(header.offset..<packed.count)
    var block = ValueBlock(columns: columns, capacity: count, count: count)
    if content.count == byteCount {
      try unpack(content, to: &block, relativeTo: reference)
    } else {
      // An LZ4 block expands at most 255 times.
      guard byteCount / 255 <= content.count,
        let bytes = LZ4.decompress(content, count: byteCount)
      else { throw ByteReader.Damage("values cannot be decompressed") }
      try unpack(bytes.span, to: &block, relativeTo: reference)
    }
    return block
  }

  private static func unpack(
    _ bytes: Span<UInt8>,
    to block: inout ValueBlock,
    relativeTo reference: ValueBlock?
  ) throws(ByteReader.Damage) {
    var reader = ByteReader(bytes)
    for column in 0..<block.columnCount {
      try unpack(column, from: &reader, to: &block, relativeTo: reference)
    }
    guard reader.isAtEnd else { throw ByteReader.Damage("there are more values than rows") }
  }

  private static func unpack(
    _ column: Int,
    from reader: inout ByteReader,
    to block: inout ValueBlock,
    relativeTo reference: ValueBlock?
  ) throws(ByteReader.Damage) {
    var integers: [Range<Int>] = []
    var reals: [Range<Int>] = []
    var contents: [(rows: Range<Int>, kind: ValueBlock.Kind)] = []
    var row = 0
    while row < block.count {
      guard let kind = ValueBlock.Kind(rawValue: try reader.byte()) else {
        throw ByteReader.Damage("a value is of no known kind")
      }
      let rows = row..<row + (try reader.count(atMost: block.count - row))
      guard !rows.isEmpty else { throw ByteReader.Damage("a run of values is empty") }
      switch kind {
      case .text, .blob: contents.append((rows, kind))
      case .unset: for row in rows { block.unset(row, column) }
      case .null: break
      case .integer: integers.append(rows)
      case .real: reals.append(rows)
      }
      row = rows.upperBound
    }
    if !integers.isEmpty {
      try unpack(integers, from: &reader) { row, value in
        block.set(row, column, integer: value)
      } relativeTo: { row in
        guard let reference, reference.kind(row, column) == .integer else { return 0 }
        return reference.word(row, column)
      }
    }
    if !reals.isEmpty { try unpack(reals, column, from: &reader, to: &block) }
    var lengths: [Int] = []
    for content in contents {
      for _ in content.rows { lengths.append(try reader.count(atMost: reader.remaining)) }
    }
    var next = lengths.makeIterator()
    for content in contents {
      for row in content.rows {
        let bytes = try reader.take(next.next() ?? 0)
        do {
          try block.set(row, column, content.kind, bytes: Array(copying: bytes))
        } catch {
          throw ByteReader.Damage("values are too large")
        }
      }
    }
  }

  private static func unpack(
    _ reals: [Range<Int>],
    _ column: Int,
    from reader: inout ByteReader,
    to block: inout ValueBlock
  ) throws(ByteReader.Damage) {
    let decimals = try reader.byte()
    if decimals == bits {
      for rows in reals {
        for row in rows {
          block.set(row, column, real: Double(bitPattern: try reader.integer(UInt64.self)))
        }
      }
      return
    }
    guard decimals <= mostDecimals else { throw ByteReader.Damage("a real has too many decimals") }
    let scale = scale(Int(decimals))
    try unpack(reals, from: &reader) { row, value in
      block.set(row, column, real: Double(value) / scale)
    } relativeTo: { _ in
      0
    }
  }

  @inline(__always)
  private static func unpack(
    _ runs: [Range<Int>],
    from reader: inout ByteReader,
    _ set: (_ row: Int, _ value: Int64) -> Void,
    relativeTo reference: (_ row: Int) -> Int64
  ) throws(ByteReader.Damage) {
    guard let form = IntegerForm(rawValue: try reader.byte()) else {
      throw ByteReader.Damage("integers are in no known form")
    }
    var previous: Int64 = 0
    for rows in runs {
      for row in rows {
        let number = try reader.signedVarint()
        let value =
          switch form {
          case .plain: number
          case .steps: previous &+ number
          case .differences: reference(row) &+ number
          }
        previous = value
        set(row, value)
      }
    }
  }
}
