import BatchIdentifiers
import BatchRuns
import BatchTestSupport
import Foundation
import Testing

/// Rows as CSV of any form, which a reader of the form must understand.
@Suite(.timeLimit(.minutes(1))) struct CSVFormTests {
  private static func form(_ random: inout SeededGenerator) -> CSVForm {
    let delimiters = (1..<0x80).filter { ![0x22, 0x0a, 0x0d].contains($0) }
    let delimiter = Character(
      Bool.random(using: &random)
        ? Unicode.Scalar(UInt8(delimiters.randomElement(using: &random) ?? 0x2c))
        : [",", ";", "\t", "|", " "].randomElement(using: &random) ?? ","
    )
    let nulls = ["", "", "NULL", "\\N", "0", "1.5", "true", "é", " ", "AP8="]
    let null = nulls.randomElement(using: &random) ?? ""
    return CSVForm(
      delimiter: delimiter,
      null: null.utf8.contains(delimiter.asciiValue ?? 0) ? "" : null,
      bom: .random(using: &random),
      quote: .random(using: &random) ? .all : .minimal
    )
  }

  private static func value(_ form: CSVForm, _ random: inout SeededGenerator) -> SQLValue {
    let pieces = [
      "", form.null, String(form.delimiter), "a", " ", "\"", "\n", "\r", "é", "0", "NULL",
    ]
    switch Int.random(in: 0..<8, using: &random) {
    case 0, 1: return .null
    case 2: return .integer(.random(in: -20...20, using: &random))
    case 3: return .real(Double(Int.random(in: -9...9, using: &random)) / 2)
    case 4: return .blob([[], [0, 0xff], [1]].randomElement(using: &random) ?? [])
    default:
      let parts = (0..<Int.random(in: 0...3, using: &random)).map { _ in
        pieces.randomElement(using: &random) ?? ""
      }
      return .text(parts.joined())
    }
  }

  @Test(arguments: 0..<200 as Range<UInt64>)
  func `each value is read back, and NULL is told apart from all others`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let form = Self.form(&random)
    let columns = Int.random(in: 1...4, using: &random)
    let rows = (0..<40).map { _ in (0..<columns).map { _ in Self.value(form, &random) } }
    var block = ValueBlock(columns: columns, capacity: rows.count, count: rows.count)
    for (index, row) in rows.enumerated() {
      for (column, value) in row.enumerated() { try block.set(index, column, value) }
    }
    let names = (0..<columns).map { ["a", "", form.null, "é\"", "t,;"][($0 + Int(seed)) % 5] }
    let encoder = RowEncoder(format: .csv(form), columns: names)
    var bytes = encoder.header
    for row in rows.indices { _ = try encoder.append(block, row, to: &bytes) }

    let told: Comment = "seed \(seed), \(form)"
    let records = try #require(CommaSeparated.records(of: bytes, form), told)
    #expect(records.count == rows.count + 1, told)
    #expect(records[0].map(\.text) == names, told)
    for (record, row) in zip(records.dropFirst(), rows) {
      #expect(record.count == columns, told)
      for (field, value) in zip(record, row) {
        // A line of nothing would be no row.
        let isOnly = columns == 1 && form.null.isEmpty
        switch value {
        case .null: #expect(field.text == form.null && field.isQuoted == isOnly, told)
        case .integer(let number): #expect(field.text == "\(number)", told)
        case .real(let number): #expect(field.text == "\(number)", told)
        case .text(let text): #expect(field.text.utf8.elementsEqual(text.utf8), told)
        case .blob(let bytes): #expect(field.text == Data(bytes).base64EncodedString(), told)
        case .invalidText: Issue.record("no such text is written")
        }
        guard value != .null else { continue }
        #expect(field.isQuoted || field.text != form.null && field.text != "", told)
        #expect(field.isQuoted || form.quote == .minimal, told)
      }
    }
  }
}
