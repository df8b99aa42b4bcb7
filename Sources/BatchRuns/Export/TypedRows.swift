/// Rows with values of stated types, on their way from a worker to the writer of row groups.
///
/// A row is its number in the chunk, how many of its texts are not UTF-8, and for each column
/// whether there is a value, and the value; or, for a compressed file of lines, its line.
package struct TypedRows: ~Copyable {
  /// Begins a row, and returns where ``end(_:invalidTexts:in:)`` finds it.
  package static func begin(_ number: Int, to bytes: inout [UInt8]) -> Int {
    append(UInt32(number), to: &bytes)
    append(UInt16(0), to: &bytes)
    return bytes.count - 2
  }

  package static func end(_ place: Int, invalidTexts: Int, in bytes: inout [UInt8]) {
    if invalidTexts == 0 { return }
    // A table has at most 32,767 columns.
    bytes[place] = UInt8(truncatingIfNeeded: invalidTexts)
    bytes[place + 1] = UInt8(truncatingIfNeeded: invalidTexts >> 8)
  }

  /// Begins a row that is a line, and returns where ``endLine(_:invalidTexts:in:)`` finds it.
  package static func beginLine(_ number: Int, to bytes: inout [UInt8]) -> Int {
    let place = begin(number, to: &bytes)
    append(UInt64(0), to: &bytes)
    return place
  }

  package static func endLine(_ place: Int, invalidTexts: Int, in bytes: inout [UInt8]) {
    end(place, invalidTexts: invalidTexts, in: &bytes)
    let start = place + 2
    let count = UInt64(bytes.count - start - 8)
    for index in 0..<8 { bytes[start + index] = UInt8(truncatingIfNeeded: count >> (8 * index)) }
  }

  package static func appendNull(to bytes: inout [UInt8]) { bytes.append(0) }

  package static func append(_ flag: Bool, to bytes: inout [UInt8]) {
    bytes.append(flag ? 2 : 1)
  }

  package static func append(_ word: Int64, to bytes: inout [UInt8]) {
    bytes.append(1)
    append(UInt64(bitPattern: word), to: &bytes)
  }

  package static func append(_ number: Double, to bytes: inout [UInt8]) {
    bytes.append(1)
    append(number.bitPattern, to: &bytes)
  }

  package static func append(_ array: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
    bytes.append(1)
    append(UInt32(array.count), to: &bytes)
    unsafe bytes.append(contentsOf: array)
  }

  private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
    unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
  }

  // MARK: Reading

  private let bytes: [UInt8]
  private var offset = 0

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package var isAtEnd: Bool { offset == bytes.count }

  /// Begins reading the next row.
  package mutating func next() -> (number: Int, invalidTexts: Int) {
    (Int(word(UInt32.self)), Int(word(UInt16.self)))
  }

  /// 0 for NULL; of a flag, 1 for false and 2 for true.
  package mutating func mark() -> UInt8 {
    offset += 1
    return bytes[offset - 1]
  }

  package mutating func integer() -> Int64 { word(Int64.self) }

  package mutating func real() -> Double { Double(bitPattern: word(UInt64.self)) }

  /// Calls `body` with text, bytes, or the digits of a long decimal.
  package mutating func withArray(_ body: (UnsafeRawBufferPointer) -> Void) {
    let count = Int(word(UInt32.self))
    offset += count
    unsafe bytes.span.extracting((offset - count)..<offset).withUnsafeBytes { unsafe body($0) }
  }

  package mutating func withLine(_ body: (UnsafeRawBufferPointer) -> Void) {
    let count = Int(word(UInt64.self))
    offset += count
    unsafe bytes.span.extracting((offset - count)..<offset).withUnsafeBytes { unsafe body($0) }
  }

  private mutating func word<Word: FixedWidthInteger & BitwiseCopyable>(_: Word.Type) -> Word {
    let start = offset
    offset += MemoryLayout<Word>.size
    return Word(
      littleEndian: unsafe bytes.span.bytes.extracting(start..<offset)
        .unsafeLoadUnaligned(as: Word.self)
    )
  }
}
