import BatchIdentifiers
@testable import BatchJobs
import BatchRuns
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// Compares the records that a load finds in files with those that were written to them.
@Suite(.timeLimit(.minutes(5))) struct RecordReaderTests {
  /// Random rows, and the text that a naive writer makes of them.
  private struct Written {
    var rows: [[String?]] = []
    /// The line in which each begins.
    var lines: [Int] = []
    var text = ""
    private var line = 1

    init(names: [String], delimiter: Character, random: inout SeededGenerator) {
      let end = Bool.random(using: &random) ? "\r\n" : "\n"
      if Bool.random(using: &random) { text += "\u{feff}" }
      add(names.joined(separator: String(delimiter)) + end)
      for _ in 0..<Int.random(in: 0...40, using: &random) {
        if Int.random(in: 0...9, using: &random) == 0 { add(end) }
        // An empty line is no record.
        let row = names.map { _ in Self.value(delimiter, &random) ?? (names.count == 1 ? "" : nil) }
        lines.append(line)
        rows.append(row)
        let fields = row.map { Self.field($0, delimiter, &random) }
        add(fields.joined(separator: String(delimiter)) + end)
      }
      // The last line of a file may lack its end, unless that is all there is of it.
      if let last = rows.last, last.count > 1, Bool.random(using: &random), text.hasSuffix(end) {
        // A carriage return and a line feed are one character.
        text.removeLast()
      }
    }

    private mutating func add(_ more: String) {
      text += more
      line += more.utf8.count { $0 == 0x0a }
    }

    private static func value(_ delimiter: Character, _ random: inout SeededGenerator) -> String? {
      let parts = ["a", "é", "\"", "\n", "\r\n", String(delimiter), " ", "1", "\"\"", "x\"y"]
      switch Int.random(in: 0...4, using: &random) {
      case 0: return nil
      case 1: return ""
      default:
        return (0..<Int.random(in: 1...5, using: &random)).map { _ in
          parts.randomElement(using: &random) ?? ""
        }.joined()
      }
    }

    private static func field(
      _ value: String?,
      _ delimiter: Character,
      _ random: inout SeededGenerator
    ) -> String {
      guard let value else { return "" }
      let bytes = Array(value.utf8)
      let needsQuotes =
        value.isEmpty || bytes.first == 0x22 || bytes.contains(0x0a) || bytes.contains(0x0d)
        || value.contains(delimiter)
      guard needsQuotes || Bool.random(using: &random) else { return value }
      return "\"" + value.replacing("\"", with: "\"\"") + "\""
    }
  }

  @Test(arguments: 0..<40)
  func `the records of random files are those that were written, wherever blocks end`(
    seed: Int
  ) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let directory = try TemporaryDirectory()
    let delimiter: Character = [",", ";", "\t"].randomElement(using: &random) ?? ","
    let names = Array(["id", "né", "c", "d"].prefix(Int.random(in: 1...4, using: &random)))
    var rows: [[String?]] = []
    var places: [String] = []
    for file in 0..<Int.random(in: 1...3, using: &random) {
      let order = names.shuffled(using: &random)
      let written = Written(names: order, delimiter: delimiter, random: &random)
      try directory.write(written.text, to: "f-\(file).csv")
      rows += written.rows.map { row in names.map { name in row[order.firstIndex(of: name) ?? 0] } }
      places += written.lines.map { "f-\(file).csv:\($0)" }
    }
    let load = Job.Load(
      files: FilePath(directory.file("f-*.csv")),
      format: .csv,
      delimiter: delimiter
    )
    let found = try LoadedFiles(scanning: load, blockSize: Int.random(in: 1...200, using: &random))
    #expect(found.recordCount == rows.count, "seed \(seed)")
    // What the run's record keeps of them is the same.
    let files = try JSONDecoder().decode(LoadedFiles.self, from: JSONEncoder().encode(found))
    #expect(files == found, "seed \(seed)")
    try files.refuseChanged(by: load)
    // The first file decides the order of the names.
    let order = files.fields.map { name in names.firstIndex(of: name) ?? 0 }
    let reader = RecordReader(files, load, types: files.fields.map { _ in .text })
    for _ in 0..<5 {
      let share = Double.random(in: 0...1, using: &random)
      let wanted = rows.indices.filter { _ in Double.random(in: 0...1, using: &random) <= share }
      let read = try reader.records(numbered: wanted, holding: .max)
      #expect(read.problems.isEmpty, "seed \(seed): \(read.problems)")
      for (row, number) in wanted.enumerated() {
        let values = order.indices.map { column in
          read.values.kind(row, column) == .null ? nil : read.values.value(row, column).description
        }
        #expect(values == order.map { rows[number][$0] }, "seed \(seed), record \(number)")
        #expect(reader.place(read.places[row]).hasSuffix(places[number]), "seed \(seed)")
      }
    }
  }

  @Test(arguments: 0..<20)
  func `each changed byte of a file is noticed when its block is read`(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let directory = try TemporaryDirectory()
    let written = Written(names: ["a", "b"], delimiter: ",", random: &random)
    guard written.rows.count > 2 else { return }
    try directory.write(written.text, to: "f.csv")
    let path = directory.file("f.csv")
    let load = Job.Load(files: FilePath(path), format: .csv)
    let files = try LoadedFiles(scanning: load, blockSize: 40)
    let reader = RecordReader(files, load, types: [.text, .text])
    let start = try #require(files.blocks.first).start
    let bytes = Array(written.text.utf8)
    for offset in start..<bytes.count {
      var changed = bytes
      changed[offset] ^= 1
      try Data(changed).write(to: URL(filePath: path))
      let block = try #require(files.blocks.last { $0.start <= offset })
      // A block of empty lines has no record.
      guard block.recordCount > 0 else { continue }
      #expect("seed \(seed), byte \(offset)") {
        _ = try reader.records(numbered: [block.firstPosition], holding: .max)
      } throws: {
        ($0 as? BatchError)?.code == .inputChanged
      }
    }
  }

  @Test(arguments: [
    (Job.ValueType.integer, "0", "0"), (.integer, "-9223372036854775808", "-9223372036854775808"),
    (.integer, "9223372036854775807", "9223372036854775807"), (.integer, "+7", "7"),
    (.integer, "1e18", "1000000000000000000"),
    (.integer, "9007199254740993.00", "9007199254740993"),
    (.integer, "12.0", "12"), (.integer, "1e3", "1000"), (.integer, "007", "7"),
    (.real, "1.5", "1.5"), (.real, "-.5", "-0.5"), (.real, "1e999", "inf"), (.real, "3", "3.0"),
    (.number, "3", "3"), (.number, "3.10", "'3.10'"), (.boolean, "TRUE", "1"), (.boolean, "f", "0"),
    (.text, "007", "'007'"), (.any, "x", "'x'"), (.blob, "AAE=", "x'0001'"), (.blob, "", "x''"),
  ])
  func `a text is read as its type`(type: Job.ValueType, text: String, value: String) throws {
    var values = ValueBlock(columns: 1, capacity: 1, count: 1)
    try ValueReader("v", type).read(Array(text.utf8).span, into: &values, 0, 0)
    #expect(values.value(0, 0).debugDescription == value)
  }

  @Test(arguments: [
    (Job.ValueType.integer, "9223372036854775808"), (.integer, "1.5"), (.integer, ""),
    (.integer, "-"), (.integer, " 1"), (.integer, "0x1"), (.real, "nan"), (.real, "inf"),
    (.real, "1,5"), (.real, "0x1p3"), (.real, "."), (.real, "1e"), (.number, "12a"),
    (.boolean, "yes"),
    (.boolean, ""), (.blob, "A"),
  ])
  func `a text that is not of its type is a problem`(type: Job.ValueType, text: String) {
    var values = ValueBlock(columns: 1, capacity: 1, count: 1)
    #expect(throws: RecordProblem.self) {
      try ValueReader("v", type).read(Array(text.utf8).span, into: &values, 0, 0)
    }
  }
}
