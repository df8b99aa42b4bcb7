import BatchIdentifiers
import BatchRuns

/// Why a record cannot be loaded.
struct RecordProblem: Error {
  let message: String

  init(_ message: String) { self.message = message }
}

/// The fields of a record of CSV.
struct CSVFields {
  struct Field {
    /// In the record's bytes, or in those without doubled quotes.
    var range: Range<Int>
    var isQuoted = false
    var isUnescaped = false
  }

  private static let quote = UInt8(ascii: "\"")

  let delimiter: UInt8
  /// The unquoted text that is NULL.
  let null: [UInt8]
  private(set) var fields: [Field] = []
  /// The fields that had doubled quotes, without these.
  private var unescaped: [UInt8] = []

  init(delimiter: UInt8, null: [UInt8]) {
    (self.delimiter, self.null) = (delimiter, null)
  }

  /// Splits a record into its fields.
  mutating func read(_ bytes: [UInt8], _ record: Range<Int>) throws(RecordProblem) {
    fields.removeAll(keepingCapacity: true)
    unescaped.removeAll(keepingCapacity: true)
    let span = bytes.span.extracting(record)
    let end = span.count
    var offset = 0
    while true {
      if offset < end, span[offset] == Self.quote {
        offset = try readQuoted(span, offset, record.lowerBound)
      } else {
        let start = offset
        while offset < end, span[offset] != delimiter { offset += 1 }
        fields.append(
          Field(range: (record.lowerBound + start)..<(record.lowerBound + offset))
        )
      }
      if offset == end { return }
      offset += 1
    }
  }

  private mutating func readQuoted(
    _ span: Span<UInt8>,
    _ start: Int,
    _ base: Int
  ) throws(RecordProblem) -> Int {
    var offset = start + 1
    var piece = offset
    let before = unescaped.count
    var isUnescaped = false
    while offset < span.count {
      guard span[offset] == Self.quote else {
        offset += 1
        continue
      }
      if offset + 1 < span.count, span[offset + 1] == Self.quote {
        isUnescaped = true
        unescaped.append(copying: span.extracting(piece..<(offset + 1)))
        offset += 2
        piece = offset
        continue
      }
      if isUnescaped {
        unescaped.append(copying: span.extracting(piece..<offset))
        fields.append(
          Field(range: before..<unescaped.count, isQuoted: true, isUnescaped: true)
        )
      } else {
        fields.append(Field(range: (base + piece)..<(base + offset), isQuoted: true))
      }
      offset += 1
      guard offset == span.count || span[offset] == delimiter else {
        throw RecordProblem("has text behind the closing quote of field \(fields.count)")
      }
      return offset
    }
    throw RecordProblem("has a quote in field \(fields.count + 1) that is not closed")
  }

  func isNull(_ index: Int, of bytes: [UInt8]) -> Bool {
    let field = fields[index]
    guard !field.isQuoted, field.range.count == null.count else { return false }
    return null.isEmpty || bytes[field.range].elementsEqual(null)
  }

  func withBytes<Result, Failure: Error>(
    _ index: Int,
    of bytes: [UInt8],
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let field = fields[index]
    return field.isUnescaped
      ? try body(unescaped.span.extracting(field.range))
      : try body(bytes.span.extracting(field.range))
  }
}
