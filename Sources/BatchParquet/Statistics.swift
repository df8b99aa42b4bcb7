/// The bounds of a column's values, by which readers skip row groups.
struct Statistics {
  private static let limit = 64

  private var minimum: [UInt8]?
  private var maximum: [UInt8]?
  private var isMinimumExact = true
  private var isMaximumExact = true

  /// Numbers in the order of their type.
  init(of words: borrowing Store<UInt64>, _ type: ParquetType) {
    let bounds = type == .double ? Self.doubleBounds(words) : Self.integerBounds(words)
    guard let bounds else { return }
    (minimum, maximum) = (Self.bytes(bounds.least, type), Self.bytes(bounds.greatest, type))
  }

  /// Byte arrays, of which long ones are replaced by shorter bounds.
  init(of arrays: borrowing ByteArrays, _ type: ParquetType) {
    guard arrays.count > 0 else { return }
    let sign: UInt8 = type.isSignedArray ? 0x80 : 0
    var (least, greatest) = (0, 0)
    for index in 1..<arrays.count {
      let array = unsafe arrays[index]
      if unsafe Self.precedes(array, arrays[least], sign) {
        least = index
      } else if unsafe Self.precedes(arrays[greatest], array, sign) {
        greatest = index
      }
    }
    let (first, last) = unsafe ([UInt8](arrays[least]), [UInt8](arrays[greatest]))
    isMinimumExact = first.count <= Self.limit
    isMaximumExact = last.count <= Self.limit
    minimum = isMinimumExact ? first : Self.prefix(first, isText: type.isText)
    maximum = isMaximumExact ? last : Self.successor(last, isText: type.isText)
  }

  /// `Statistics` of parquet.thrift.
  func thrift(nullCount: Int) -> [UInt8] {
    var thrift = Thrift()
    thrift.element { fields in
      fields.i64(3, nullCount)
      if let maximum { fields.binary(5, maximum) }
      if let minimum { fields.binary(6, minimum) }
      if maximum != nil { fields.boolean(7, isMaximumExact) }
      if minimum != nil { fields.boolean(8, isMinimumExact) }
    }
    return thrift.bytes.array
  }

  private static func bytes(_ word: UInt64, _ type: ParquetType) -> [UInt8] {
    (0..<type.wordByteCount).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
  }

  private typealias Bounds = (least: UInt64, greatest: UInt64)

  private static func integerBounds(_ words: borrowing Store<UInt64>) -> Bounds? {
    var (least, greatest) = (Int64.max, Int64.min)
    for index in 0..<words.count {
      let number = unsafe Int64(bitPattern: words.base[index])
      least = min(least, number)
      greatest = max(greatest, number)
    }
    return words.count == 0 ? nil : (UInt64(bitPattern: least), UInt64(bitPattern: greatest))
  }

  /// A bound that is zero stands for both zeros, and there are none with NaN, which has no place in
  /// the order: readers for which it is the greatest would skip it.
  private static func doubleBounds(_ words: borrowing Store<UInt64>) -> Bounds? {
    var (least, greatest) = (Double.infinity, -Double.infinity)
    var hasNaN = false
    for index in 0..<words.count {
      let number = unsafe Double(bitPattern: words.base[index])
      if number < least { least = number }
      if number > greatest { greatest = number }
      if number.isNaN { hasNaN = true }
    }
    if least == 0 { least = -0.0 }
    if greatest == 0 { greatest = 0.0 }
    return hasNaN || words.count == 0 ? nil : (least.bitPattern, greatest.bitPattern)
  }

  /// Signed numbers all have the same count, and differ from unsigned ones by their first bit.
  @inline(__always)
  private static func precedes(
    _ a: UnsafeRawBufferPointer,
    _ b: UnsafeRawBufferPointer,
    _ sign: UInt8
  ) -> Bool {
    if sign != 0, unsafe a[0] != b[0] { return unsafe a[0] ^ sign < b[0] ^ sign }
    return unsafe Words.precedes(a, b)
  }

  /// The start of a long array, which is not above it and has whole characters only.
  static func prefix(_ array: [UInt8], isText: Bool) -> [UInt8] {
    var count = min(limit, array.count)
    if isText, count < array.count {
      while count > 0, array[count] & 0xC0 == 0x80 { count -= 1 }
    }
    return Array(array[..<count])
  }

  /// The shortest bytes above everything that starts as a long array does, if there are any.
  static func successor(_ array: [UInt8], isText: Bool) -> [UInt8]? {
    let prefix = prefix(array, isText: isText)
    guard isText else {
      guard let last = prefix.lastIndex(where: { $0 != 0xFF }) else { return nil }
      return prefix[..<last] + [prefix[last] + 1]
    }
    guard let text = String(validating: prefix, as: UTF8.self) else { return nil }
    var scalars = Array(text.unicodeScalars)
    while let last = scalars.popLast() {
      // Surrogates are no characters; what follows the last one before them comes after them.
      if let next = Unicode.Scalar(last.value == 0xD7FF ? 0xE000 : last.value + 1) {
        return Array(String(String.UnicodeScalarView(scalars + [next])).utf8)
      }
    }
    return nil
  }
}
