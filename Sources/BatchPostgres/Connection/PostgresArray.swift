#if PostgreSQL
import BatchIdentifiers

/// An array of one dimension, made element by element in the form in which the server takes it.
package struct PostgresArray: Sendable, Hashable {
  /// What the elements are.
  package enum Element: Sendable, Hashable {
    case integer
    case text
    case blob

    /// The type: an OID of `pg_type`.
    var type: UInt32 {
      switch self {
      case .integer: 20
      case .text: 25
      case .blob: 17
      }
    }

    /// The type of an array of them.
    var arrayType: UInt32 {
      switch self {
      case .integer: 1016
      case .text: 1009
      case .blob: 1001
      }
    }

    /// The array's name in SQL.
    var arrayName: String {
      switch self {
      case .integer: "pg_catalog.int8[]"
      case .text: "pg_catalog.text[]"
      case .blob: "pg_catalog.bytea[]"
      }
    }
  }

  package let element: Element
  /// How many elements there are.
  package private(set) var count = 0
  /// Whether one of them is NULL.
  package private(set) var hasNull = false
  /// The elements, each behind its length.
  private var elements: [UInt8] = []

  package init(of element: Element) {
    self.element = element
  }

  /// An array of integers.
  package init(_ values: some Collection<Int64>) {
    self.init(of: .integer)
    elements.reserveCapacity(values.count * 12)
    for value in values { append(value) }
  }

  /// An array of texts.
  package init(_ values: [String]) {
    self.init(of: .text)
    for value in values { append(bytes: Array(value.utf8).span) }
  }

  package mutating func appendNull() {
    count += 1
    hasNull = true
    elements.append(bigEndian: Int32(-1))
  }

  /// Appends to an array of integers.
  package mutating func append(_ value: Int64) {
    count += 1
    elements.append(bigEndian: Int32(8))
    elements.append(bigEndian: value)
  }

  /// Appends to an array of texts or of blobs.
  package mutating func append(bytes: Span<UInt8>) {
    count += 1
    elements.append(bigEndian: Int32(clamping: bytes.count))
    elements.append(copying: bytes)
  }

  /// Appends the array as `array_recv` takes it.
  func append(to bytes: inout [UInt8]) {
    bytes.reserveCapacity(bytes.count + 20 + elements.count)
    for field in [count == 0 ? 0 : 1, hasNull ? 1 : 0, Int32(bitPattern: element.type)] {
      bytes.append(bigEndian: field)
    }
    if count == 0 { return }
    // One dimension, whose first index is 1.
    bytes.append(bigEndian: Int32(clamping: count))
    bytes.append(bigEndian: Int32(1))
    bytes += elements
  }
}
#endif
