#if PostgreSQL
import BatchIdentifiers

/// Splits the bytes of a `COPY … TO STDOUT (FORMAT binary)` into rows, wherever the bytes are cut.
///
/// See <https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4>.
struct BinaryCopyRows {
  private let columnCount: Int
  /// The beginning of a row that has not fully arrived.
  private var pending: [UInt8] = []
  private var place = Place.header

  private enum Place {
    case header
    case rows
    case end
  }

  init(columns count: Int) {
    columnCount = count
  }

  var isComplete: Bool { place == .end && pending.isEmpty }

  /// Takes bytes and calls `body` with each complete row: its values, each preceded by its length.
  mutating func append(
    _ bytes: Span<UInt8>,
    _ body: (Span<UInt8>) throws(BatchError) -> Void
  ) throws(BatchError) {
    if pending.isEmpty {
      let count = try take(bytes, body)
      if count < bytes.count { pending.append(copying: bytes.extracting(count..<bytes.count)) }
    } else {
      pending.append(copying: bytes)
      let whole = pending
      let count = try take(whole.span, body)
      pending.removeFirst(count)
    }
  }

  private mutating func take(
    _ bytes: Span<UInt8>,
    _ body: (Span<UInt8>) throws(BatchError) -> Void
  ) throws(BatchError) -> Int {
    var offset = 0
    if place == .header {
      // An 11-byte signature, flags, and an extension preceded by its length.
      guard bytes.count >= 19 else { return 0 }
      let extensionCount = Int(bytes.bigEndian(at: 15, as: UInt32.self))
      guard bytes[0] == UInt8(ascii: "P"), bytes[10] == 0, extensionCount < 1 << 20 else {
        throw damaged("no binary header")
      }
      guard bytes.count >= 19 + extensionCount else { return 0 }
      offset = 19 + extensionCount
      place = .rows
    }
    while place == .rows, let end = try endOfRow(bytes, from: offset) {
      guard end > offset + 2 else {
        place = .end
        return end
      }
      try body(bytes.extracting(offset + 2..<end))
      offset = end
    }
    return offset
  }

  /// The end of the row, or of the two-byte trailer, that starts at an offset; nil if incomplete.
  private func endOfRow(_ bytes: Span<UInt8>, from start: Int) throws(BatchError) -> Int? {
    guard bytes.count - start >= 2 else { return nil }
    let count = bytes.bigEndian(at: start, as: Int16.self)
    var offset = start + 2
    if count == -1 { return offset }
    guard count == columnCount else { throw damaged("\(count) columns") }
    for _ in 0..<columnCount {
      guard bytes.count - offset >= 4 else { return nil }
      let length = Int(bytes.bigEndian(at: offset, as: Int32.self))
      offset += 4 + max(0, length)
      guard length >= -1, offset <= bytes.count else {
        if length < -1 { throw damaged("a length of \(length)") }
        return nil
      }
    }
    return offset
  }

  private func damaged(_ what: String) -> BatchError {
    BatchError(.databaseAccess, "the server sent \(what) in a COPY")
  }
}

struct BinaryFields {
  private var offset = 0

  /// The range of the next value in the row; nil for NULL.
  mutating func next(in row: Span<UInt8>) -> Range<Int>? {
    let count = Int(row.bigEndian(at: offset, as: Int32.self))
    offset += 4
    guard count >= 0 else { return nil }
    offset += count
    return offset - count..<offset
  }
}

extension Span<UInt8> {
  /// The integer whose first byte is at an offset, in network byte order.
  @inline(__always)
  func bigEndian<Integer: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int,
    as _: Integer.Type
  ) -> Integer {
    // The span checks that all bytes are within it, and any bytes form an integer.
    Integer(bigEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Integer.self))
  }

  /// An integer of 2, 4 or 8 bytes; nil for other lengths.
  @inline(__always)
  func bigEndianInteger() -> Int64? {
    switch count {
    case 8: bigEndian(at: 0, as: Int64.self)
    case 4: Int64(bigEndian(at: 0, as: Int32.self))
    case 2: Int64(bigEndian(at: 0, as: Int16.self))
    default: nil
    }
  }
}
#endif
