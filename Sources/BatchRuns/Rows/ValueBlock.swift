public import BatchIdentifiers

/// The values of some columns of some rows, column by column, always in three arrays.
///
/// A value is a kind and a word: the integer, the bits of the real, or the range of the text or
/// blob in ``bytes``. So a column of integers is an array of integers.
@usableFromInline
package struct ValueBlock: Sendable, Equatable {
  @usableFromInline
  package enum Kind: UInt8 {
    case null, integer, real, text, blob
    /// No value is set, so the column keeps its own.
    case unset
  }

  // Numbers, for code inlined into other modules.
  @inlinable package static var integerKind: UInt8 { 1 }
  @inlinable package static var realKind: UInt8 { 2 }

  package private(set) var columnCount: Int
  @usableFromInline package let capacity: Int
  @usableFromInline package var count: Int
  // Only this module sets them; code inlined into the loops of a store reads them.
  @usableFromInline package internal(set) var kinds: [UInt8]
  @usableFromInline package internal(set) var words: [Int64]
  /// The bytes of all texts and blobs.
  @usableFromInline package internal(set) var bytes: [UInt8] = []

  /// The maximum number of bytes, so that a word can represent a range of them.
  @inlinable package static var byteLimit: Int { Int(UInt32.max) }

  /// Makes a block filled with one kind of value, without content.
  package init(columns: Int, capacity: Int, count: Int = 0, filledWith kind: Kind = .null) {
    columnCount = columns
    self.capacity = capacity
    self.count = count
    kinds = [UInt8](repeating: kind.rawValue, count: columns * capacity)
    words = [Int64](repeating: 0, count: columns * capacity)
  }

  // MARK: One value

  @inlinable
  package func kind(_ row: Int, _ column: Int) -> Kind {
    // The same as `Kind(rawValue:)`, which other modules cannot inline.
    switch kinds[column * capacity + row] {
    case 1: .integer
    case 2: .real
    case 3: .text
    case 4: .blob
    case 5: .unset
    default: .null
    }
  }

  @inlinable
  package func word(_ row: Int, _ column: Int) -> Int64 { words[column * capacity + row] }

  @inlinable
  package func real(_ row: Int, _ column: Int) -> Double {
    Double(bitPattern: UInt64(bitPattern: word(row, column)))
  }

  package func isInvalidText(_ row: Int, _ column: Int) -> Bool {
    kind(row, column) == .text
      && !bytes.span.extracting(Self.range(word(row, column))).isUTF8
  }

  @inlinable
  package func bytes(_ row: Int, _ column: Int) -> ArraySlice<UInt8> {
    bytes[Self.range(word(row, column))]
  }

  /// Calls `body` with the bytes of a text or blob, which are only valid during the call.
  @inlinable
  package func withBytes<Result>(
    _ row: Int,
    _ column: Int,
    _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    unsafe bytes.span.extracting(Self.range(word(row, column))).withUnsafeBytes(body)
  }

  package func value(_ row: Int, _ column: Int) -> SQLValue {
    switch kind(row, column) {
    case .null, .unset: .null
    case .integer: .integer(word(row, column))
    case .real: .real(real(row, column))
    case .text: unsafe bytes(row, column).withUnsafeBytes { unsafe SQLValue(text: $0) }
    case .blob: .blob(Array(bytes(row, column)))
    }
  }

  /// The approximate size of the values.
  package var byteCount: Int { bytes.count + count * columnCount * 9 }

  /// The key formed by the first columns of a row, byte for byte.
  package func key(of row: Int, columns: Int) -> PrimaryKey {
    var encoder = EncodedKey.Encoder()
    appendKey(of: row, columns: columns, to: &encoder)
    return .encoded(encoder.key)
  }

  /// Appends the first columns of a row to a key, byte for byte.
  package func appendKey(of row: Int, columns: Int, to encoder: inout EncodedKey.Encoder) {
    for column in 0..<columns {
      switch kind(row, column) {
      case .null, .unset: encoder.appendNull()
      case .integer: encoder.append(word(row, column))
      case .real: encoder.append(real(row, column))
      case .text:
        unsafe bytes(row, column).withUnsafeBytes { unsafe encoder.append(textBytes: $0) }
      case .blob: unsafe bytes(row, column).withUnsafeBytes { unsafe encoder.append(blob: $0) }
      }
    }
  }

  /// Returns a value, or `current` if none is set.
  package func value(_ row: Int, _ column: Int, or current: SQLValue) -> SQLValue {
    kind(row, column) == .unset ? current : value(row, column)
  }

  @inlinable
  package static func range(_ word: Int64) -> Range<Int> {
    let bits = UInt64(bitPattern: word)
    let start = Int(truncatingIfNeeded: bits & 0xffff_ffff)
    return start..<(start + Int(truncatingIfNeeded: bits >> 32))
  }

  /// Appends bytes of a text or blob, and returns the word with their range.
  private mutating func append(_ body: (inout [UInt8]) -> Void) throws(BatchError) -> Int64 {
    let start = bytes.count
    body(&bytes)
    do throws(BatchError) {
      try requireRoom()
    } catch {
      bytes.removeLast(bytes.count - start)
      throw error
    }
    return Int64(bitPattern: UInt64(bytes.count - start) << 32 | UInt64(start))
  }

  /// Throws if there are more bytes than a word can represent.
  @usableFromInline
  func requireRoom() throws(BatchError) {
    guard bytes.count > Self.byteLimit else { return }
    throw BatchError(
      .valueTooLarge,
      "the texts and blobs of a chunk have more than 4 GB",
      advice: "lower chunk.size, or leave large columns out of \(.reads)"
    )
  }

  // MARK: Setting values

  package mutating func set(_ row: Int, _ column: Int, integer: Int64) {
    put(.integer, integer, row, column)
  }

  package mutating func set(_ row: Int, _ column: Int, real: Double) {
    // SQLite stores NULL for NaN.
    if real.isNaN { return setNull(row, column) }
    put(.real, Int64(bitPattern: real.bitPattern), row, column)
  }

  /// Sets a number; also NaN, which SQLite does not have.
  package mutating func set(_ row: Int, _ column: Int, exactly real: Double) {
    put(.real, Int64(bitPattern: real.bitPattern), row, column)
  }

  /// Makes all values NULL, and keeps the memory.
  package mutating func removeValues() {
    for index in kinds.indices { kinds[index] = Kind.null.rawValue }
    bytes.removeAll(keepingCapacity: true)
  }

  package mutating func setNull(_ row: Int, _ column: Int) {
    put(.null, 0, row, column)
  }

  package mutating func set(
    _ row: Int,
    _ column: Int,
    _ kind: Kind,
    bytes: some Collection<UInt8>
  ) throws(BatchError) {
    put(kind, try append { $0.append(contentsOf: bytes) }, row, column)
  }

  package mutating func set(_ row: Int, _ column: Int, _ value: SQLValue) throws(BatchError) {
    switch value {
    case .null: setNull(row, column)
    case .integer(let value): set(row, column, integer: value)
    case .real(let value): set(row, column, real: value)
    case .text(let value): try set(row, column, .text, bytes: value.utf8)
    case .invalidText(let value): try set(row, column, .text, bytes: value)
    case .blob(let value): try set(row, column, .blob, bytes: value)
    }
  }

  package mutating func set(
    _ row: Int,
    _ column: Int,
    _ kind: Kind,
    bytes content: Span<UInt8>
  ) throws(BatchError) {
    put(kind, try append { $0.append(copying: content) }, row, column)
  }

  private mutating func put(_ kind: Kind, _ word: Int64, _ row: Int, _ column: Int) {
    let index = column * capacity + row
    kinds[index] = kind.rawValue
    words[index] = word
  }

  /// Removes a value, so that the column keeps its own.
  package mutating func unset(_ row: Int, _ column: Int) {
    put(.unset, 0, row, column)
  }

  /// Removes the values of a row, so that it stays unchanged.
  package mutating func unset(_ row: Int) {
    for column in 0..<columnCount { unset(row, column) }
  }

  // MARK: Columns and rows

  /// The range of the column in ``kinds`` and ``words``.
  package func range(ofColumn column: Int) -> Range<Int> {
    column * capacity..<(column * capacity + count)
  }

  /// Replaces the kinds and words of a column without texts and blobs.
  package mutating func replace(column: Int, kinds newKinds: [UInt8], words newWords: [Int64]) {
    kinds.replaceSubrange(range(ofColumn: column), with: newKinds)
    words.replaceSubrange(range(ofColumn: column), with: newWords)
  }

  package func hasUnset(column: Int) -> Bool {
    kinds[range(ofColumn: column)].contains(Kind.unset.rawValue)
  }

  package func isSet(_ row: Int) -> Bool {
    for column in 0..<columnCount where kinds[column * capacity + row] != Kind.unset.rawValue {
      return true
    }
    return false
  }

  package mutating func keepColumns(_ kept: Int) {
    kinds.removeLast((columnCount - kept) * capacity)
    words.removeLast((columnCount - kept) * capacity)
    columnCount = kept
  }

  /// Returns some columns, which share the bytes.
  package func columns(_ columns: Range<Int>) -> ValueBlock {
    var part = ValueBlock(columns: 0, capacity: capacity, count: count)
    part.columnCount = columns.count
    let places = columns.lowerBound * capacity..<columns.upperBound * capacity
    part.kinds = Array(kinds[places])
    part.words = Array(words[places])
    part.bytes = bytes
    return part
  }

  /// Returns some rows, which share the bytes; a negative index makes a row without values.
  package func selecting(_ rows: some Collection<Int>) -> ValueBlock {
    var part = ValueBlock(columns: columnCount, capacity: rows.count, count: rows.count)
    var target = 0
    for column in 0..<columnCount {
      for row in rows {
        guard row >= 0 else {
          part.kinds[target] = Kind.unset.rawValue
          target += 1
          continue
        }
        part.kinds[target] = kinds[column * capacity + row]
        part.words[target] = words[column * capacity + row]
        target += 1
      }
    }
    part.bytes = bytes
    return part
  }

  /// Compares two rows of blocks that have the same columns.
  package func isSame(_ row: Int, as other: ValueBlock, _ otherRow: Int) -> Bool {
    isSame(row, as: other, otherRow, columns: columnCount)
  }

  /// Compares two rows in the first columns.
  package func isSame(_ row: Int, as other: ValueBlock, _ otherRow: Int, columns: Int) -> Bool {
    for column in 0..<columns where !isSame(row, column, as: other, otherRow) { return false }
    return true
  }

  /// Compares two rows in one column.
  package func isSame(_ row: Int, _ column: Int, as other: ValueBlock, _ otherRow: Int) -> Bool {
    isSame(row, column, as: other, otherRow, column)
  }

  /// Compares two values, which may be in different columns.
  package func isSame(
    _ row: Int,
    _ column: Int,
    as other: ValueBlock,
    _ otherRow: Int,
    _ otherColumn: Int
  ) -> Bool {
    let kind = kind(row, column)
    guard kind == other.kind(otherRow, otherColumn) else { return false }
    return kind == .text || kind == .blob
      ? bytes(row, column) == other.bytes(otherRow, otherColumn)
      : word(row, column) == other.word(otherRow, otherColumn)
  }

  /// Copies a row from another block with the same columns.
  package mutating func set(_ row: Int, from other: ValueBlock, _ otherRow: Int) throws(BatchError)
  {
    for column in 0..<columnCount { try set(row, column, from: other, otherRow, column) }
  }

  package mutating func set(
    _ row: Int,
    _ column: Int,
    from other: ValueBlock,
    _ otherRow: Int,
    _ otherColumn: Int
  ) throws(BatchError) {
    let kind = other.kind(otherRow, otherColumn)
    if kind == .text || kind == .blob {
      try set(row, column, kind, bytes: other.bytes(otherRow, otherColumn))
    } else {
      put(kind, other.word(otherRow, otherColumn), row, column)
    }
  }

  /// Replaces the rows from `row` on by those of another block.
  package mutating func replace(from row: Int, with other: ValueBlock) throws(BatchError) {
    let shift = Int64(bytes.count)
    if !other.bytes.isEmpty { _ = try append { $0 += other.bytes } }
    for column in 0..<columnCount {
      for index in 0..<other.count {
        let source = column * other.capacity + index
        let hasBytes =
          other.kinds[source] == Kind.text.rawValue
          || other.kinds[source] == Kind.blob.rawValue
        kinds[column * capacity + row + index] = other.kinds[source]
        words[column * capacity + row + index] = other.words[source] + (hasBytes ? shift : 0)
      }
    }
  }

  /// Lets `body` write the values of the last row in place.
  @inlinable
  package mutating func withLastRow(
    _ body: (
      _ kinds: UnsafeMutablePointer<UInt8>,
      _ words: UnsafeMutablePointer<Int64>,
      _ bytes: inout [UInt8]
    ) -> Void
  ) throws(BatchError) {
    let row = count - 1
    unsafe kinds.withUnsafeMutableBufferPointer { kinds in
      unsafe words.withUnsafeMutableBufferPointer { words in
        guard let kinds = kinds.baseAddress, let words = words.baseAddress else {
          return
        }
        unsafe body(kinds + row, words + row, &bytes)
      }
    }
    try requireRoom()
  }
}

extension BatchError.Code {
  /// The texts and blobs are too large to be held together.
  public static let valueTooLarge = Self(rawValue: "valueTooLarge")
}
