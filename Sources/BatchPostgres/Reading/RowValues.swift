#if PostgreSQL
package import BatchIdentifiers

/// Values of some columns of some rows, row by row, in three arrays regardless of the number of values.
///
/// A value is a kind and a word: the integer, the bits of the floating-point number, or where the text or blob is
/// among the bytes.
package struct RowValues: Sendable, Equatable {
  /// The kind of a value.
  package enum Kind: UInt8, Sendable {
    case null, integer, real, text, blob
    /// No value was given: the column keeps its own.
    case unset
  }

  package let columnCount: Int
  /// The number of rows.
  package private(set) var count = 0
  private var kinds: [UInt8] = []
  private var words: [Int64] = []
  private var bytes: [UInt8] = []

  package init(columns count: Int) {
    columnCount = count
  }

  /// The approximate size of the values in bytes.
  package var byteCount: Int { bytes.count + kinds.count * 9 }

  // MARK: Reading

  package func kind(_ row: Int, _ column: Int) -> Kind {
    Kind(rawValue: kinds[row * columnCount + column]) ?? .null
  }

  /// The value, if it is an integer.
  package func integer(_ row: Int, _ column: Int) -> Int64 { words[row * columnCount + column] }

  /// The value, if it is a floating-point number.
  package func real(_ row: Int, _ column: Int) -> Double {
    Double(bitPattern: UInt64(bitPattern: integer(row, column)))
  }

  /// The bytes of a text or a blob.
  package func bytes(_ row: Int, _ column: Int) -> ArraySlice<UInt8> {
    let word = UInt64(bitPattern: integer(row, column))
    let start = Int(word & 0xffff_ffff)
    return bytes[start..<start + Int(word >> 32)]
  }

  /// The value, if it is a text.
  package func text(_ row: Int, _ column: Int) -> String {
    String(decoding: bytes(row, column), as: UTF8.self)
  }

  /// Whether any column of a row has a value.
  func isSet(_ row: Int) -> Bool {
    let places = row * columnCount..<(row + 1) * columnCount
    return kinds[places].contains { $0 != Kind.unset.rawValue }
  }

  // MARK: Writing

  package mutating func appendNull() { append(.null, 0) }
  package mutating func appendUnset() { append(.unset, 0) }
  package mutating func append(integer: Int64) { append(.integer, integer) }
  package mutating func append(real: Double) {
    append(.real, Int64(bitPattern: real.bitPattern))
  }

  /// Appends a text.
  ///
  /// - Throws: `BatchError` of code `invalidValue` if the texts and blobs exceed 4 GB.
  package mutating func append(text: Span<UInt8>) throws(BatchError) { try append(.text, text) }

  /// Appends a text.
  package mutating func append(text: String) throws(BatchError) {
    try append(.text, Array(text.utf8).span)
  }

  /// Appends a blob.
  package mutating func append(blob: Span<UInt8>) throws(BatchError) { try append(.blob, blob) }

  /// Ends a row whose columns all have a value.
  package mutating func endRow() {
    count += 1
    precondition(kinds.count == count * columnCount, "a row has a value for each column")
  }

  /// Appends a row of others.
  mutating func append(row: Int, of other: RowValues) throws(BatchError) {
    for column in 0..<columnCount {
      let kind = other.kind(row, column)
      switch kind {
      case .text, .blob: try append(kind, Array(other.bytes(row, column)).span)
      case .null, .integer, .real, .unset: append(kind, other.integer(row, column))
      }
    }
    endRow()
  }

  /// The first `length` rows.
  func prefix(_ length: Int) -> RowValues {
    var part = self
    part.count = length
    part.kinds.removeSubrange((length * columnCount)...)
    part.words.removeSubrange((length * columnCount)...)
    return part
  }

  /// Whether two rows have the same values.
  func isSame(_ row: Int, as other: RowValues, _ otherRow: Int) -> Bool {
    (0..<columnCount).allSatisfy { column in
      let kind = kind(row, column)
      guard kind == other.kind(otherRow, column) else { return false }
      return kind == .text || kind == .blob
        ? bytes(row, column) == other.bytes(otherRow, column)
        : integer(row, column) == other.integer(otherRow, column)
    }
  }

  private mutating func append(_ kind: Kind, _ word: Int64) {
    kinds.append(kind.rawValue)
    words.append(word)
  }

  private mutating func append(_ kind: Kind, _ content: Span<UInt8>) throws(BatchError) {
    let start = bytes.count
    guard start + content.count <= UInt32.max else {
      throw BatchError(
        .invalidValue,
        "the texts and blobs of a chunk have more than 4 GB",
        advice: "lower chunk.size, or leave large columns out of \(.reads)"
      )
    }
    bytes.append(copying: content)
    append(kind, Int64(bitPattern: UInt64(content.count) << 32 | UInt64(start)))
  }
}
#endif
