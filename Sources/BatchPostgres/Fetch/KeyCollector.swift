#if PostgreSQL
import BatchIdentifiers

/// Makes a list of keys in the binary form of the server, of which it keeps no more than the list and a row.
struct KeyCollector: ~Copyable {
  private let query: PostgresQuery
  private let forms: [PostgresKey.Form]
  private let isInteger: Bool
  private var builder: IdentifierListBuilder
  private var encoder = EncodedKey.Encoder()
  private var scratch: [UInt8] = []
  /// The beginning of what has not arrived to its end.
  private var pending: [UInt8] = []
  private var place = Place.header

  private enum Place {
    case header
    case rows
    case end
  }

  /// A collector of no keys yet.
  init(_ query: PostgresQuery, store: String) {
    self.query = query
    forms = query.key.columns.map(\.form)
    isInteger = query.key.isInteger
    builder = IdentifierListBuilder(
      storeIdentifier: store,
      entityName: query.table.title,
      keyKind: isInteger ? .integer : .encoded
    )
  }

  /// The list of all keys.
  consuming func finish() -> IdentifierList { builder.finish() }

  // MARK: Rows

  /// Takes the value of a column of a row; the columns come in the order of the key.
  ///
  /// - Throws: `BatchError` of code `unstableKey` for a value that no key can hold.
  mutating func append(_ value: Span<UInt8>?, _ column: Int) throws(BatchError) {
    guard let value else {
      if isInteger || query.key.origin != .declared { throw nullKey(column) }
      return encoder.appendNull()
    }
    switch forms[column] {
    case .integer:
      let integer = try integer(value)
      if isInteger { builder.append(integer) } else { encoder.append(integer) }
    case .uuid:
      try writeUUID(value)
      unsafe scratch.withUnsafeBytes { unsafe encoder.append(textBytes: $0) }
    case .text, .other: unsafe value.withUnsafeBytes { unsafe encoder.append(textBytes: $0) }
    case .blob: unsafe value.withUnsafeBytes { unsafe encoder.append(blob: $0) }
    }
  }

  /// Ends a row of which all columns were taken.
  mutating func endRow() throws(BatchError) {
    if isInteger { return }
    guard encoder.bytes.count <= EncodedKey.maximumByteCount else {
      throw BatchError(
        .unstableKey,
        "a row of \(query.table.title.quotedForMessage) has a key of \(encoder.bytes.count) bytes,"
          + " and \(EncodedKey.maximumByteCount) are the most",
        remedy: "leave such rows out"
      )
    }
    unsafe encoder.bytes.withUnsafeBytes { unsafe builder.append(encoded: $0) }
    encoder.removeAll()
  }

  private func nullKey(_ column: Int) -> BatchError {
    let name = query.key.columns[column].name
    return BatchError(
      .unstableKey,
      "a row of \(query.table.title.quotedForMessage) has NULL in its key column"
        + " \(name.quotedForMessage) and cannot be identified",
      remedy: "leave such rows out with \(PostgresName.quoted(name)) IS NOT NULL"
    )
  }

  /// An integer of 2, 4 or 8 bytes.
  private func integer(_ value: Span<UInt8>) throws(BatchError) -> Int64 {
    switch value.count {
    case 8: value.bigEndian(at: 0, as: Int64.self)
    case 4: Int64(value.bigEndian(at: 0, as: Int32.self))
    case 2: Int64(value.bigEndian(at: 0, as: Int16.self))
    default: throw damaged("an integer of \(value.count) bytes")
    }
  }

  /// Writes the text of a UUID: 36 characters in lower case.
  private mutating func writeUUID(_ value: Span<UInt8>) throws(BatchError) {
    guard value.count == 16 else { throw damaged("a UUID of \(value.count) bytes") }
    scratch.removeAll(keepingCapacity: true)
    for index in 0..<16 {
      if [4, 6, 8, 10].contains(index) { scratch.append(UInt8(ascii: "-")) }
      scratch.append(Self.digit(value[index] >> 4))
      scratch.append(Self.digit(value[index] & 15))
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  private func damaged(_ what: String) -> BatchError {
    BatchError(.databaseAccess, "the server has sent \(what) for a key")
  }

  // MARK: COPY

  /// Takes bytes of a `COPY … (FORMAT binary)`, wherever they end.
  ///
  /// See <https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4>.
  mutating func append(copied bytes: Span<UInt8>) throws(BatchError) {
    if pending.isEmpty {
      let count = try take(bytes)
      if count < bytes.count { pending.append(copying: bytes.extracting(count..<bytes.count)) }
    } else {
      pending.append(copying: bytes)
      let whole = pending
      let count = try take(whole.span)
      pending.removeFirst(count)
    }
  }

  /// Whether all has arrived.
  var isComplete: Bool { place == .end && pending.isEmpty }

  /// Takes the rows that are whole.
  ///
  /// - Returns: How many bytes they have.
  private mutating func take(_ bytes: Span<UInt8>) throws(BatchError) -> Int {
    var offset = 0
    if place == .header {
      // Eleven bytes that are always the same, flags, and an extension by its length.
      guard bytes.count >= 19 else { return 0 }
      let extensionCount = Int(bytes.bigEndian(at: 15, as: UInt32.self))
      guard bytes[0] == UInt8(ascii: "P"), bytes[10] == 0, extensionCount < 1 << 20 else {
        throw damaged("no binary copy")
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
      offset += 2
      for column in forms.indices {
        let count = Int(bytes.bigEndian(at: offset, as: Int32.self))
        offset += 4
        if count < 0 {
          try append(nil, column)
        } else {
          try append(bytes.extracting(offset..<offset + count), column)
          offset += count
        }
      }
      try endRow()
    }
    return offset
  }

  /// Where the row ends that begins at an offset, or the trailer of two bytes does; nil if it is not whole.
  private func endOfRow(_ bytes: Span<UInt8>, from start: Int) throws(BatchError) -> Int? {
    guard bytes.count - start >= 2 else { return nil }
    let columnCount = bytes.bigEndian(at: start, as: Int16.self)
    var offset = start + 2
    if columnCount == -1 { return offset }
    guard columnCount == forms.count else { throw damaged("\(columnCount) columns") }
    for _ in 0..<columnCount {
      guard bytes.count - offset >= 4 else { return nil }
      let count = Int(bytes.bigEndian(at: offset, as: Int32.self))
      offset += 4 + max(0, count)
      guard count >= -1, offset <= bytes.count else {
        if count < -1 { throw damaged("a length of \(count)") }
        return nil
      }
    }
    return offset
  }
}

extension Span<UInt8> {
  /// The integer whose first byte is at an offset, in the order of the network.
  @inline(__always)
  fileprivate func bigEndian<Integer: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int,
    as _: Integer.Type
  ) -> Integer {
    // The span checks that all bytes are within it, and any bytes are an integer.
    Integer(bigEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Integer.self))
  }
}
#endif
