package import BatchIdentifiers
import BatchPlatform
package import BatchParquet
package import BatchRuns

/// Reads the values of rows as the types that columns have in a Parquet file.
package struct ParquetRowEncoder: Sendable {
  package typealias ColumnType = Job.ColumnType

  private struct Column {
    let name: String
    let type: ColumnType
    /// 10 to the power of a decimal's digits, which its values do not reach.
    let limit: Int128
  }

  private let columns: [Column]
  private let onMismatch: Job.Parquet.Mismatch
  private let invalidText: InvalidText

  /// - Parameters:
  ///   - names: The columns of the file.
  ///   - types: Their types.
  ///   - onMismatch: What to do with a value of another type.
  ///   - invalidText: What to do with text that is not UTF-8.
  package init(
    _ names: [String],
    _ types: [ColumnType],
    onMismatch: Job.Parquet.Mismatch,
    invalidText: InvalidText
  ) {
    columns = zip(names, types).map { name, type in
      var limit: Int128 = 0
      if case .decimal(let precision, _) = type { limit = Self.powersOfTen[precision] }
      return Column(name: name, type: type, limit: limit)
    }
    self.onMismatch = onMismatch
    self.invalidText = invalidText
  }

  /// Appends a row, and returns how many of its texts are not UTF-8.
  ///
  /// - Throws: An error that concerns the row, if a value has no form in its type.
  package func append(
    _ values: ValueBlock,
    _ row: Int,
    number: Int,
    to bytes: inout [UInt8]
  ) throws(BatchError) -> Int {
    let place = TypedRows.begin(number, to: &bytes)
    var invalidTexts = 0
    for (index, column) in columns.enumerated() {
      if values.kind(row, index) == .null {
        TypedRows.appendNull(to: &bytes)
      } else if try !append(values, row, index, column, to: &bytes, &invalidTexts) {
        switch onMismatch {
        case .null: TypedRows.appendNull(to: &bytes)
        case .fail: throw mismatch(values.value(row, index), column)
        }
      }
    }
    TypedRows.end(place, invalidTexts: invalidTexts, in: &bytes)
    return invalidTexts
  }

  /// Appends a value; returns false if it has no form in its type.
  private func append(
    _ values: ValueBlock,
    _ row: Int,
    _ index: Int,
    _ column: Column,
    to bytes: inout [UInt8],
    _ invalidTexts: inout Int
  ) throws(BatchError) -> Bool {
    let kind = values.kind(row, index)
    switch column.type {
    case .integer:
      switch kind {
      case .integer: TypedRows.append(values.word(row, index), to: &bytes)
      case .real:
        guard let whole = Int64(exactly: values.real(row, index)) else { return false }
        TypedRows.append(whole, to: &bytes)
      default: return false
      }
    case .real:
      switch kind {
      case .real: TypedRows.append(values.real(row, index), to: &bytes)
      case .integer:
        guard let real = Double(exactly: values.word(row, index)) else { return false }
        TypedRows.append(real, to: &bytes)
      default: return false
      }
    case .boolean:
      guard kind == .integer, 0...1 ~= values.word(row, index) else { return false }
      TypedRows.append(values.word(row, index) == 1, to: &bytes)
    case .text:
      guard kind == .text else {
        var digits: [UInt8] = []
        switch kind {
        case .integer: NumberText.append(values.word(row, index), to: &digits)
        case .real: NumberText.append(values.real(row, index), to: &digits)
        default: return false
        }
        append(digits, to: &bytes)
        return true
      }
      if try !appendText(values, row, index, column, to: &bytes) { invalidTexts += 1 }
    case .json:
      // Readers refuse a file with one text that is none.
      var checked: [UInt8] = []
      guard kind == .text, JSONText.append(Array(values.bytes(row, index)).span, to: &checked)
      else {
        return false
      }
      _ = try appendText(values, row, index, column, to: &bytes)
    case .blob:
      guard kind == .blob else { return false }
      unsafe values.withBytes(row, index) { unsafe TypedRows.append($0, to: &bytes) }
    case .uuid:
      guard let uuid = Self.uuid(values, row, index) else { return false }
      append(uuid, to: &bytes)
    case .date:
      guard kind == .text, let date = Self.date(values, row, index), let day = date.wholeDays
      else { return false }
      TypedRows.append(day, to: &bytes)
    case .timestamp, .timestamptz:
      guard kind == .text, let date = Self.date(values, row, index) else { return false }
      TypedRows.append(date.microseconds, to: &bytes)
    case .decimal(let precision, let scale):
      guard let unscaled = Self.unscaled(values, row, index, scale),
        -column.limit < unscaled, unscaled < column.limit
      else { return false }
      if precision <= 18 {
        TypedRows.append(Int64(unscaled), to: &bytes)
      } else {
        unsafe withUnsafeBytes(of: unscaled.bigEndian) {
          // The least number of bytes, which every precision from 19 on has.
          unsafe TypedRows.append(Self.shortened($0), to: &bytes)
        }
      }
    }
    return true
  }

  private func append(_ array: [UInt8], to bytes: inout [UInt8]) {
    unsafe array.withUnsafeBytes { unsafe TypedRows.append($0, to: &bytes) }
  }

  /// Appends a text; returns false if it is not UTF-8.
  private func appendText(
    _ values: ValueBlock,
    _ row: Int,
    _ index: Int,
    _ column: Column,
    to bytes: inout [UInt8]
  ) throws(BatchError) -> Bool {
    guard values.isInvalidText(row, index) else {
      unsafe values.withBytes(row, index) { unsafe TypedRows.append($0, to: &bytes) }
      return true
    }
    var text: [UInt8] = []
    switch invalidText {
    case .replace:
      unsafe values.withBytes(row, index) {
        unsafe $0.forEachRepairedByte { text.append($0) }
      }
    case .base64: unsafe values.withBytes(row, index) { unsafe Base64.append($0, to: &text) }
    case .fail: throw .invalidText(in: column.name)
    }
    append(text, to: &bytes)
    return false
  }

  private func mismatch(_ value: SQLValue, _ column: Column) -> BatchError {
    BatchError(
      .invalidValue,
      "column \(column.name.quotedForMessage) holds \(Self.shown(value)), which is no \(column.type.name)",
      remedy:
        "name another type in action.types, let skip count such rows, or set action.onMismatch to \"null\""
    )
  }

  private static func shown(_ value: SQLValue) -> String {
    if case .text(let text) = value {
      return text.count > 60 ? "\(text.prefix(60))…".quotedForMessage : text.quotedForMessage
    }
    return value.debugDescription
  }

  // MARK: Values

  private static func date(_ values: ValueBlock, _ row: Int, _ index: Int) -> SQLDate? {
    let bytes = values.bytes(row, index)
    guard bytes.count <= 40 else { return nil }
    return SQLDate(String(decoding: bytes, as: UTF8.self))
  }

  private static func uuid(_ values: ValueBlock, _ row: Int, _ index: Int) -> [UInt8]? {
    let bytes = values.bytes(row, index)
    switch values.kind(row, index) {
    case .blob: return bytes.count == 16 ? Array(bytes) : nil
    case .text:
      guard bytes.count == 36, let uuid = UUID(uuidString: String(decoding: bytes, as: UTF8.self))
      else { return nil }
      return unsafe withUnsafeBytes(of: uuid.uuid) { unsafe Array($0) }
    default: return nil
    }
  }

  // MARK: Decimals

  private static let powersOfTen: [Int128] = (0...38).reduce(into: [1]) { powers, digits in
    if digits > 0 { powers.append(powers[digits - 1] * 10) }
  }

  /// A number times 10 to the power of `scale`; nil if it has more digits after the point.
  private static func unscaled(
    _ values: ValueBlock,
    _ row: Int,
    _ index: Int,
    _ scale: Int
  ) -> Int128? {
    switch values.kind(row, index) {
    case .integer:
      let (product, overflows) = Int128(values.word(row, index))
        .multipliedReportingOverflow(by: powersOfTen[scale])
      return overflows ? nil : product
    case .real:
      // The shortest digits that mean this number: 0.1, and not what it is in binary.
      var digits: [UInt8] = []
      NumberText.append(values.real(row, index), to: &digits)
      return unscaled(digits[...], scale)
    case .text: return unscaled(values.bytes(row, index), scale)
    default: return nil
    }
  }

  private static func unscaled(_ text: ArraySlice<UInt8>, _ scale: Int) -> Int128? {
    var rest = text
    let isNegative = rest.first == UInt8(ascii: "-")
    if isNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
    var (number, digits, fraction) = (Int128(0), 0, 0)
    var isAfterPoint = false
    var exponent = 0
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        let (tens, overflows) = number.multipliedReportingOverflow(by: 10)
        let (sum, overflowsToo) = tens.addingReportingOverflow(Int128(byte - 0x30))
        if overflows || overflowsToo { return nil }
        number = sum
        digits += 1
        if isAfterPoint { fraction += 1 }
      case UInt8(ascii: ".") where !isAfterPoint: isAfterPoint = true
      case UInt8(ascii: "e"), UInt8(ascii: "E"):
        guard let power = Int(String(decoding: rest, as: UTF8.self)), abs(power) < 1_000 else {
          return nil
        }
        exponent = power
        rest = []
      default: return nil
      }
    }
    guard digits > 0 else { return nil }
    var shift = scale - fraction + exponent
    while shift < 0 {
      // Zeros after the last digit say nothing.
      let (quotient, remainder) = number.quotientAndRemainder(dividingBy: 10)
      guard remainder == 0 else { return nil }
      if quotient == 0 { break }
      (number, shift) = (quotient, shift + 1)
    }
    if shift > 0, number != 0 {
      guard shift < powersOfTen.count else { return nil }
      let (product, overflows) = number.multipliedReportingOverflow(by: powersOfTen[shift])
      if overflows { return nil }
      number = product
    }
    return isNegative ? -number : number
  }

  /// A number in two's complement without bytes that only repeat its sign.
  private static func shortened(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var first = 0
    while first < 15 {
      let (byte, next) = unsafe (bytes[first], bytes[first + 1])
      guard byte == 0 || byte == 0xff, (byte ^ next) & 0x80 == 0 else { break }
      first += 1
    }
    return unsafe UnsafeRawBufferPointer(rebasing: bytes[first...])
  }
}

extension Job.ColumnType {
  /// How a file has it.
  package var inParquet: ParquetType {
    switch self {
    case .integer: .int64
    case .real: .double
    case .boolean: .boolean
    case .text: .text
    case .blob: .bytes
    case .json: .json
    case .uuid: .uuid
    case .date: .date
    case .timestamp: .timestamp(isUTC: false)
    case .timestamptz: .timestamp(isUTC: true)
    case .decimal(let precision, let scale): .decimal(precision: precision, scale: scale)
    }
  }
}

extension Job.Parquet {
  /// The format of a file with some columns.
  package func format(_ columns: [String], _ types: [Job.ColumnType]) -> RowGroups.Format {
    RowGroups.Format(
      columns: zip(columns, types).map { ParquetColumn(name: $0, type: $1.inParquet) },
      compression: codec,
      createdBy: "batch version \(batchVersion)"
    )
  }

  private var codec: ParquetCompression {
    switch compression {
    case .none: .none
    case .snappy: .snappy
    case .lz4: .lz4
    }
  }
}
