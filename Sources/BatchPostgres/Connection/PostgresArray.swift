#if PostgreSQL
import BatchIdentifiers
package import BatchRuns

/// A one-dimensional array, built element by element in the server's binary form.
package struct PostgresArray: Sendable, Hashable {
  package enum Element: Sendable, Hashable {
    case boolean
    case integer
    case real
    case text
    case blob
    /// A transaction ID, as in a row's `xmin`.
    case transaction

    /// An OID of `pg_type`.
    var type: UInt32 {
      switch self {
      case .boolean: 16
      case .integer: 20
      case .real: 701
      case .text: 25
      case .blob: 17
      case .transaction: 28
      }
    }

    /// An OID of `pg_type`.
    var arrayType: UInt32 {
      switch self {
      case .boolean: 1000
      case .integer: 1016
      case .real: 1022
      case .text: 1009
      case .blob: 1001
      case .transaction: 1011
      }
    }

    /// Whether all elements have the same size, so that the server finds one by its number without
    /// reading those before it.
    var hasFixedSize: Bool {
      switch self {
      case .boolean, .integer, .real, .transaction: true
      case .text, .blob: false
      }
    }

    var arrayName: String {
      switch self {
      case .boolean: "pg_catalog.bool[]"
      case .integer: "pg_catalog.int8[]"
      case .real: "pg_catalog.float8[]"
      case .text: "pg_catalog.text[]"
      case .blob: "pg_catalog.bytea[]"
      case .transaction: "pg_catalog.xid[]"
      }
    }
  }

  package let element: Element
  package private(set) var count = 0
  package private(set) var hasNull = false
  /// The elements, each preceded by its length.
  private var elements: [UInt8] = []

  /// Makes room for `capacity` elements of 8 bytes.
  package init(of element: Element, capacity: Int = 0) {
    self.element = element
    elements.reserveCapacity(capacity * 12)
  }

  package init(_ values: some Collection<Int64>) {
    self.init(of: .integer)
    elements.reserveCapacity(values.count * 12)
    for value in values { append(value) }
  }

  package init(_ values: [String]) {
    self.init(of: .text)
    for value in values { append(bytes: Array(value.utf8).span) }
  }

  package mutating func appendNull() {
    count += 1
    hasNull = true
    elements.append(bigEndian: Int32(-1))
  }

  package mutating func append(_ value: Int64) {
    count += 1
    elements.append(bigEndian: Int32(8))
    elements.append(bigEndian: value)
  }

  package mutating func append(_ value: Bool) {
    count += 1
    elements.append(bigEndian: Int32(1))
    elements.append(value ? 1 : 0)
  }

  package mutating func append(_ value: Double) {
    count += 1
    elements.append(bigEndian: Int32(8))
    elements.append(bigEndian: value.bitPattern)
  }

  package mutating func append(transaction value: UInt32) {
    count += 1
    elements.append(bigEndian: Int32(4))
    elements.append(bigEndian: value)
  }

  package mutating func append(bytes: Span<UInt8>) {
    count += 1
    elements.append(bigEndian: Int32(clamping: bytes.count))
    elements.append(copying: bytes)
  }

  /// Appends a value of a block, which must have the kind of the elements, unless these are texts.
  package mutating func append(_ values: ValueBlock, _ row: Int, _ column: Int) {
    switch (values.kind(row, column), element) {
    case (.null, _), (.unset, _): appendNull()
    case (.integer, .integer): append(values.word(row, column))
    case (.integer, .boolean): append(values.word(row, column) != 0)
    case (.integer, .real): append(Double(values.word(row, column)))
    case (.real, .real): append(values.real(row, column))
    case (.integer, _): append(bytes: Array(String(values.word(row, column)).utf8).span)
    case (.real, _):
      append(bytes: Array(PostgresValue.text(of: values.real(row, column)).utf8).span)
    default:
      append(bytes: values.bytes.span.extracting(ValueBlock.range(values.word(row, column))))
    }
  }

  /// An array of integers, texts or blobs as SQL, for a statement that takes no values; texts and
  /// blobs appear only as hexadecimal digits, so they cannot become SQL.
  var sql: String {
    // The text form of an array means something else if `array_nulls` is off.
    if hasNull { return "ARRAY[\(elementsInSQL.joined(separator: ", "))]::\(element.arrayName)" }
    var text: [UInt8] = [UInt8(ascii: "{")]
    forEachElement { value in
      if text.count > 1 { text.append(UInt8(ascii: ",")) }
      guard let value else { return }
      switch element {
      case .integer: text += String(value.bigEndian(at: 0, as: Int64.self)).utf8
      // Four backslashes for two levels of escaping, the outer one by E'…'.
      case .blob: text += "\"\\\\\\\\x\(value.hexadecimal)\"".utf8
      case .text:
        text.append(UInt8(ascii: "\""))
        for index in value.indices {
          if value[index] == UInt8(ascii: "\"") || value[index] == UInt8(ascii: "\\") {
            text.append(UInt8(ascii: "\\"))
          }
          text.append(value[index])
        }
        text.append(UInt8(ascii: "\""))
      case .boolean, .real, .transaction: preconditionFailure("such arrays are bound")
      }
    }
    text.append(UInt8(ascii: "}"))
    guard element == .text else {
      // An E'…' means the same whatever standard_conforming_strings is.
      return "E'\(String(decoding: text, as: UTF8.self))'::\(element.arrayName)"
    }
    // The collation of `convert_from` is "C", which would conflict with the column's.
    return "(\(text.span.textInSQL) COLLATE pg_catalog.\"default\")::\(element.arrayName)"
  }

  private var elementsInSQL: [String] {
    var parts: [String] = []
    forEachElement { value in
      guard let value else { return parts.append("NULL") }
      switch element {
      case .integer: parts.append("(\(value.bigEndian(at: 0, as: Int64.self)))")
      case .blob: parts.append("pg_catalog.decode('\(value.hexadecimal)', 'hex')")
      case .text: parts.append("\(value.textInSQL) COLLATE pg_catalog.\"default\"")
      case .boolean, .real, .transaction: preconditionFailure("such arrays are bound")
      }
    }
    return parts
  }

  private func forEachElement(_ body: (Span<UInt8>?) -> Void) {
    let bytes = elements.span
    var offset = 0
    while offset < bytes.count {
      let count = Int(bytes.bigEndian(at: offset, as: Int32.self))
      offset += 4
      guard count >= 0 else {
        body(nil)
        continue
      }
      body(bytes.extracting(offset..<offset + count))
      offset += count
    }
  }

  /// Appends the array in the form that `array_recv` reads.
  func append(to bytes: inout [UInt8]) {
    bytes.reserveCapacity(bytes.count + 20 + elements.count)
    for field in [count == 0 ? 0 : 1, hasNull ? 1 : 0, Int32(bitPattern: element.type)] {
      bytes.append(bigEndian: field)
    }
    if count == 0 { return }
    // One dimension, with lower bound 1.
    bytes.append(bigEndian: Int32(clamping: count))
    bytes.append(bigEndian: Int32(1))
    bytes += elements
  }
}

extension Span<UInt8> {
  var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    return unsafe String(unsafeUninitializedCapacity: 2 * count) { buffer in
      for index in indices {
        unsafe buffer[2 * index] = digits[Int(self[index] >> 4)]
        unsafe buffer[2 * index + 1] = digits[Int(self[index] & 15)]
      }
      return 2 * count
    }
  }

  /// An SQL expression that yields the bytes as text and contains none of its characters.
  var textInSQL: String {
    "pg_catalog.convert_from(pg_catalog.decode('\(hexadecimal)', 'hex'), 'UTF8')"
  }
}
#endif
