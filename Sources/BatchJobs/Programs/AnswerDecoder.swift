import BatchRuns
import BatchIdentifiers

/// Decodes the answers of a program: each line is a JSON object with the changed columns.
///
/// An empty object or `null` leaves the row unchanged. `{"$error": "…"}` means that the row fails,
/// and `{"$retry": "…"}` that it cannot be done now. Values are written as in exports:
/// `{"$base64": true, "encoded": "…"}` is a blob and, with `"type": "text"`, a text of any bytes.
struct AnswerDecoder {
  private struct Remarks {
    var failure: String?
    var retry: String?
    var isIdentified = false
    /// The identifier of another row, repeated instead of the row's own.
    var other: String?
  }

  static let reservedNames = ["$identifier", "$error", "$retry"]

  private let names: [[UInt8]]
  private let columns: [String]

  /// The columns whose numbers must keep all their digits.
  private let numbers: Set<Int>

  /// - Parameters:
  ///   - columns: The columns that may be changed.
  ///   - numbers: Indexes of the columns whose numbers must keep all their digits.
  init(columns: [String], numbers: Set<Int> = []) {
    self.columns = columns
    self.numbers = numbers
    names = columns.map { Array($0.utf8) }
  }

  func noAnswers(for rows: ChunkRows) -> RowChanges {
    RowChanges(ofRows: rows.count, columns: columns.count)
  }

  /// Decodes the answers to some of the rows, one per line; a row whose answer is invalid fails.
  ///
  /// - Returns: Whether each answer repeats its row's identifier, so that none can belong to
  ///   another row.
  /// - Throws: `BatchError` of code `handlerFailed` if an answer is for another row, which casts
  ///   doubt on those around it.
  func read(
    _ lines: [UInt8],
    for rows: ChunkRows,
    _ asked: Range<Int>,
    into changes: inout RowChanges
  ) throws(BatchError) -> Bool {
    var areIdentified = true
    var scanner = JSONLineScanner(lines)
    for row in asked {
      let line = scanner.offset
      var remarks = Remarks()
      do throws(JSONLineScanner.Problem) {
        try readAnswer(&scanner, row, rows, into: &changes.values, &remarks)
        if let reason = remarks.failure {
          changes.fail(row, BatchError(.handlerFailed, "the command says: \(reason)"))
        } else if let reason = remarks.retry {
          let message = "the command asks for a retry: \(reason)"
          changes.fail(row, BatchError(.retryLater, message))
        }
      } catch {
        let answer = "the command's answer"
        guard remarks.other == nil else {
          throw Self.unusable("\(answer) for identifier \(rows.key(of: row)) \(error.message)")
        }
        changes.fail(row, Self.unusable("\(answer) \(error.message)"))
        scanner.skipLine(from: line)
      }
      if !remarks.isIdentified { areIdentified = false }
    }
    return areIdentified
  }

  private static func unusable(_ message: String) -> BatchError {
    BatchError(
      .handlerFailed,
      message,
      remedy: "it must write one JSON object of changed columns for each line that it reads"
    )
  }

  private func readAnswer(
    _ scanner: inout JSONLineScanner,
    _ row: Int,
    _ rows: ChunkRows,
    into values: inout ValueBlock,
    _ remarks: inout Remarks
  ) throws(JSONLineScanner.Problem) {
    if scanner.readNull() { return try scanner.endLine() }
    try scanner.forEachMember { scanner, key throws(JSONLineScanner.Problem) in
      if let column = names.firstIndex(where: { key.elementsEqual($0) }) {
        do throws(JSONLineScanner.Problem) {
          return try read(&scanner, row, column, into: &values)
        } catch {
          throw .init("\(error.message), in the column \(columns[column].quotedForMessage)")
        }
      }
      let name = String(decoding: key, as: UTF8.self)
      switch name {
      case "$error": remarks.failure = try readReason(&scanner, name)
      case "$retry": remarks.retry = try readReason(&scanner, name)
      case "$identifier":
        let expected = rows.key(of: row).description
        let bytes = try readString(&scanner, name, ", which is \(expected.quotedForMessage) here")
        let identifier = String(decoding: bytes, as: UTF8.self)
        guard identifier == expected else {
          remarks.other = identifier
          throw .init("is for identifier \(identifier.quotedForMessage)")
        }
        remarks.isIdentified = true
      default:
        let remedy = remedyForUnknownName(name, among: columns, kind: "columns of action.writes")
        throw .init("has an unknown column \(name.quotedForMessage); \(remedy)")
      }
    }
    try scanner.endLine()
  }

  private func readString(
    _ scanner: inout JSONLineScanner,
    _ name: String,
    _ hint: String = ""
  ) throws(JSONLineScanner.Problem) -> ArraySlice<UInt8> {
    let noun: String
    switch try scanner.readValue() {
    case .string(let bytes): return bytes
    case .null: noun = "null"
    case .boolean: noun = "a boolean"
    case .integer, .real: noun = "a number"
    case .object: noun = "an object"
    }
    throw .init("has \(noun) where \(name.quotedForMessage) must be a string\(hint)")
  }

  /// Reads a reason, short enough to show and to keep.
  private func readReason(
    _ scanner: inout JSONLineScanner,
    _ name: String
  ) throws(JSONLineScanner.Problem) -> String {
    String(decoding: try readString(&scanner, name).prefix(1000), as: UTF8.self).onOneLine
  }

  private func read(
    _ scanner: inout JSONLineScanner,
    _ row: Int,
    _ column: Int,
    into values: inout ValueBlock
  ) throws(JSONLineScanner.Problem) {
    if numbers.contains(column), let digits = try scanner.readDigits() {
      return try set(row, column, .text, digits, in: &values)
    }
    switch try scanner.readValue() {
    case .null: values.setNull(row, column)
    case .boolean(let value): values.set(row, column, integer: value ? 1 : 0)
    case .integer(let value): values.set(row, column, integer: value)
    case .real(let value): values.set(row, column, real: value)
    case .string(let bytes): try set(row, column, .text, bytes, in: &values)
    case .object:
      let (kind, bytes) = try scanner.readingBytes()
      try set(row, column, kind, bytes, in: &values)
    }
  }

  private func set(
    _ row: Int,
    _ column: Int,
    _ kind: ValueBlock.Kind,
    _ bytes: some Collection<UInt8>,
    in values: inout ValueBlock
  ) throws(JSONLineScanner.Problem) {
    do {
      try values.set(row, column, kind, bytes: bytes)
    } catch {
      throw .init("is too long: \(error.message)")
    }
  }
}
