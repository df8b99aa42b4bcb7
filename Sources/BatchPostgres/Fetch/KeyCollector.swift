#if PostgreSQL
import BatchIdentifiers

/// Builds a list of keys from the server's binary form; holds only the list and one row.
struct KeyCollector: ~Copyable {
  private let query: PostgresQuery
  private let forms: [PostgresKey.Form]
  private let isInteger: Bool
  private var builder: IdentifierListBuilder
  private var encoder = EncodedKey.Encoder()
  private var scratch: [UInt8] = []
  private var rows: BinaryCopyRows

  /// A collector without keys.
  init(_ query: PostgresQuery, store: String, spill: BlockSpill) {
    self.query = query
    forms = query.key.columns.map(\.form)
    rows = BinaryCopyRows(columns: forms.count)
    isInteger = query.key.isInteger
    builder = IdentifierListBuilder(
      storeIdentifier: store,
      entityName: query.table.title,
      keyKind: isInteger ? .integer : .encoded,
      spill: spill
    )
  }

  /// The list of all keys.
  consuming func finish() -> PackedIdentifiers { builder.finishPacked() }

  // MARK: Rows

  /// Takes the value of one column of a row; columns come in key order.
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
    case .binary(let type):
      guard let text = type.text(of: value) else {
        throw damaged("a \(type.typeName) of \(value.count) bytes")
      }
      encoder.append(text: text)
    case .blob: unsafe value.withUnsafeBytes { unsafe encoder.append(blob: $0) }
    }
  }

  /// Ends a row whose columns were all taken.
  mutating func endRow() throws(BatchError) {
    if isInteger { return }
    guard encoder.bytes.count <= EncodedKey.maximumByteCount else {
      throw BatchError(
        .unstableKey,
        "a row of \(query.table.title.quotedForMessage) has a key of \(encoder.bytes.count.grouped) bytes,"
          + " and \(EncodedKey.maximumByteCount.grouped) are the most",
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

  private func integer(_ value: Span<UInt8>) throws(BatchError) -> Int64 {
    guard let integer = value.bigEndianInteger() else {
      throw damaged("an integer of \(value.count) bytes")
    }
    return integer
  }

  /// Writes a UUID as text: 36 characters in lower case.
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
    BatchError(.databaseAccess, "the server sent \(what) for a key")
  }

  // MARK: COPY

  /// Takes bytes of a `COPY … (FORMAT binary)`, cut anywhere.
  mutating func append(copied bytes: Span<UInt8>) throws(BatchError) {
    // Taken out meanwhile, since the keys go to this collector.
    var rows = BinaryCopyRows(columns: forms.count)
    swap(&rows, &self.rows)
    defer { swap(&rows, &self.rows) }
    try rows.append(bytes) { row throws(BatchError) in
      var fields = BinaryFields()
      for column in forms.indices {
        if let place = fields.next(in: row) {
          try append(row.extracting(place), column)
        } else {
          try append(nil, column)
        }
      }
      try endRow()
    }
  }

  /// Whether everything has arrived.
  var isComplete: Bool { rows.isComplete }
}
#endif
