import BatchIdentifiers
import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads the answers of a program: a JSON object of changed columns on each line.
///
/// An object of nothing, or `null`, leaves the row as it is. `{"$error": "…"}` says that this row
/// cannot be done. Values are written as in exports: `{"$base64": true, "encoded": "…"}` is a blob.
struct AnswerDecoder {
  private let names: [[UInt8]]
  private let columns: [String]

  /// A decoder for the columns that may be changed.
  init(columns: [String]) {
    self.columns = columns
    names = columns.map { Array($0.utf8) }
  }

  /// The changes of some rows, from as many lines.
  func changes(
    from answers: [UInt8],
    for rows: ChunkRows
  ) throws(BatchError) -> RowChanges {
    var changes = RowChanges(
      values: ValueBlock(
        columns: columns.count,
        capacity: rows.count,
        count: rows.count,
        filledWith: .unset
      )
    )
    var scanner = JSONLineScanner(answers)
    for row in 0..<rows.count {
      do throws(JSONLineScanner.Problem) {
        if let message = try readAnswer(&scanner, row, rows, into: &changes.values) {
          changes.values.unset(row)
          changes.failures.append(
            (row, BatchError(.handlerFailed, "the command says: \(message.onOneLine)"))
          )
        }
      } catch {
        throw BatchError(
          .handlerFailed,
          "the command's answer for identifier \(rows.key(of: row)) \(error.message)",
          remedy: "it must write one JSON object of changed columns for each line that it reads"
        )
      }
    }
    return changes
  }

  /// Reads a line.
  ///
  /// - Returns: What the program says is wrong with the row, if anything is.
  private func readAnswer(
    _ scanner: inout JSONLineScanner,
    _ row: Int,
    _ rows: ChunkRows,
    into values: inout ValueBlock
  ) throws(JSONLineScanner.Problem) -> String? {
    if scanner.readNull() {
      try scanner.endLine()
      return nil
    }
    var message: String?
    try scanner.forEachMember { scanner, key throws(JSONLineScanner.Problem) in
      if let column = names.firstIndex(where: { key.elementsEqual($0) }) {
        return try read(&scanner, row, column, into: &values)
      }
      let name = String(decoding: key, as: UTF8.self)
      switch name {
      case "$error": message = String(decoding: try scanner.readString(), as: UTF8.self)
      case "$identifier":
        let identifier = String(decoding: try scanner.readString(), as: UTF8.self)
        guard identifier == rows.key(of: row).description else {
          throw .init("is for identifier \(identifier.quotedForMessage)")
        }
      default:
        let remedy = remedyForUnknownName(name, among: columns, kind: "columns of action.writes")
        throw .init("has an unknown column \(name.quotedForMessage); \(remedy)")
      }
    }
    try scanner.endLine()
    return message
  }

  private func read(
    _ scanner: inout JSONLineScanner,
    _ row: Int,
    _ column: Int,
    into values: inout ValueBlock
  ) throws(JSONLineScanner.Problem) {
    switch try scanner.readValue() {
    case .null: values.setNull(row, column)
    case .boolean(let value): values.set(row, column, integer: value ? 1 : 0)
    case .integer(let value): values.set(row, column, integer: value)
    case .real(let value): values.set(row, column, real: value)
    case .string(let bytes): try set(row, column, .text, bytes, in: &values)
    case .object: try set(row, column, .blob, readBlob(&scanner), in: &values)
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

  private func readBlob(
    _ scanner: inout JSONLineScanner
  ) throws(JSONLineScanner.Problem) -> [UInt8] {
    var encoded: [UInt8]?
    var isMarked = false
    try scanner.forEachMember { scanner, key throws(JSONLineScanner.Problem) in
      switch String(decoding: key, as: UTF8.self) {
      case "$base64":
        guard case .boolean(true) = try scanner.readValue() else { throw .init("has no value") }
        isMarked = true
      case "encoded": encoded = Array(try scanner.readString())
      default: throw .init("has an object where a value is expected")
      }
    }
    guard isMarked, let encoded, let data = Data(base64Encoded: Data(encoded)) else {
      throw .init("has an object that is no blob where a value is expected")
    }
    return [UInt8](data)
  }
}
