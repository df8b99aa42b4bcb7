import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct RowExportTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a, \"b \"\"c\"\"\", č)"
    )
  }

  /// Everything that the rows of `t` become.
  private func export(
    _ format: RowFormat,
    where predicate: String? = nil,
    recheck: Recheck = .skip,
    meanwhile: String? = nil
  ) async throws -> (bytes: [UInt8], outcomes: Outcomes) {
    let store = try await Store(path: path)
    let list = try await store.fetchIdentifiers(FetchRequest(entity: "t", where: predicate))
    if let meanwhile { try Connection(path: path).execute(meanwhile) }
    let entity = try store.schema.entity(named: "t")
    let key = try entity.requireKey()
    let export = RowExport(
      entity: entity,
      key: key,
      attributes: entity.attributes,
      format: .lines(LineFormat(format), .none),
      predicate: predicate.map { SQLExpression($0) },
      recheck: recheck,
      parameters: [:]
    )
    let lines = try export.lines(
      for: ChunkKeys(list.packed, 0..<list.count, key: key),
      in: Connection(path: path)
    )
    return (export.header + lines.bytes, lines.result.outcomes)
  }

  private func insert(_ rows: [[SQLValue]]) throws {
    let connection = try Connection(path: path)
    try connection.transaction(.immediate) { () throws(BatchError) in
      for row in rows {
        try connection.execute("INSERT INTO t VALUES (NULL, ?, ?, ?)", row[0], row[1], row[2])
      }
    }
  }

  private func randomValue(using random: inout SeededGenerator) -> SQLValue {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: return .null
    case 1: return .integer(Int64(truncatingIfNeeded: random.next()))
    case 2: return .integer([.min, .max, 0, -1, 9, 10].randomElement(using: &random) ?? 0)
    case 3:
      let value = Double(bitPattern: random.next())
      return value.isFinite ? .real(value) : .real(0.1)
    case 4:
      return .real(
        [0, -0.0, 1, 1e16, .leastNormalMagnitude, 0.1, 1e300].randomElement(using: &random) ?? 0
      )
    case 5:
      return .blob(
        (0..<Int.random(in: 0...40, using: &random)).map { _ in .random(in: 0...255, using: &random)
        }
      )
    default:
      let scalars: [Unicode.Scalar] = (0..<Int.random(in: 0...30, using: &random)).map { _ in
        switch Int.random(in: 0..<4, using: &random) {
        case 0: Unicode.Scalar(UInt8.random(in: 0...127, using: &random))
        case 1:
          [",", "\"", "\n", "\r", "\\", " ", "/", "\u{7f}"].randomElement(using: &random) ?? ","
        case 2: Unicode.Scalar(UInt32.random(in: 0x80...0xd7ff, using: &random)) ?? "č"
        default: Unicode.Scalar(UInt32.random(in: 0x1_0000...0x10_ffff, using: &random)) ?? "🧵"
        }
      }
      var text = String.UnicodeScalarView()
      text.append(contentsOf: scalars)
      return .text(String(text))
    }
  }

  @Test(arguments: 0..<6 as Range<UInt64>)
  func `an export reads back as the stored values`(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let rows = (0..<80).map { _ in (0..<3).map { _ in randomValue(using: &random) } }
    try insert(rows)

    let (json, _) = try await export(.ndjson)
    let lines = json.split(separator: 0x0a, omittingEmptySubsequences: false).dropLast()
    #expect(lines.count == rows.count)
    for (index, (line, row)) in zip(lines, rows).enumerated() {
      let object = try JSONDecoder().decode([String: JSONCell].self, from: Data(line))
      #expect(object.keys.sorted() == ["a", "b \"c\"", "id", "č"])
      #expect(object["id"]?.isEqual(to: .integer(Int64(index + 1))) == true)
      for (name, value) in zip(["a", "b \"c\"", "č"], row) {
        #expect(object[name]?.isEqual(to: value) == true, "\(value)")
      }
      _ = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
    }

    let (csv, _) = try await export(.csv)
    let records = try #require(CommaSeparated.records(of: csv))
    #expect(records.first?.map(\.text) == ["id", "a", "b \"c\"", "č"])
    #expect(records.count == rows.count + 1)
    for (record, row) in zip(records.dropFirst(), rows) {
      for (field, value) in zip(record.dropFirst(), row) {
        switch value {
        case .null: #expect(field.text == "" && !field.isQuoted)
        case .integer(let number): #expect(Int64(field.text) == number)
        case .real(let number): #expect(Double(field.text) == number)
        case .text(let text):
          #expect(Array(field.text.utf8) == Array(text.utf8))
          if text.isEmpty { #expect(field.isQuoted) }
        case .invalidText: Issue.record("no such text is inserted")
        case .blob(let bytes): #expect(field.text == Data(bytes).base64EncodedString())
        }
      }
    }
  }

  @Test func `an export writes every storage class in its documented form`() async throws {
    try insert([
      [.null, .integer(.min), .real(-.infinity)], [.text(""), .blob([]), .real(.infinity)],
      [.text("a\"\\/\u{0}\u{1f}\u{7f}\n\r\t"), .real(2), .blob([0xfb, 0xff])],
    ])
    try Connection(path: path).execute(
      "INSERT INTO t (a) VALUES (CAST(x'41ff42c3' AS TEXT))"
    )
    let (json, outcomes) = try await export(.ndjson)
    #expect(outcomes.succeeded == 4)
    #expect(
      String(decoding: json, as: UTF8.self) == #"""
        {"id":1,"a":null,"b \"c\"":-9223372036854775808,"č":-1e999}
        {"id":2,"a":"","b \"c\"":{"$base64":true,"encoded":""},"č":1e999}
        {"id":3,"a":"a\"\\/\u0000\u001f\#u{7f}\n\r\t","b \"c\"":2.0,"č":{"$base64":true,"encoded":"+/8="}}
        {"id":4,"a":"A\#u{fffd}B\#u{fffd}","b \"c\"":null,"č":null}

        """#
    )
    let (csv, _) = try await export(.csv)
    let records = try #require(CommaSeparated.records(of: csv))
    #expect(records[1].map(\.text) == ["1", "", "-9223372036854775808", "-1e999"])
    #expect(records[2].map(\.isQuoted) == [false, true, true, false])
    #expect(records[4][1].text == "A\u{fffd}B\u{fffd}")
    // RFC 4180: lines end in CRLF.
    #expect(csv.suffix(2) == [0x0d, 0x0a])
  }

  @Test func `an export counts and omits rows that vanished or no longer match`() async throws {
    try insert((0..<6).map { [.integer(Int64($0)), .null, .null] })
    let (json, outcomes) = try await export(
      .ndjson,
      where: "a < 9",
      meanwhile: "UPDATE t SET a = 9 WHERE id IN (2, 3)"
    )
    #expect(outcomes.succeeded == 4)
    #expect(outcomes.noLongerMatching == 2)
    #expect(json.filter { $0 == 0x0a }.count == 4)
    let (_, off) = try await export(.ndjson, recheck: .off, meanwhile: "DELETE FROM t WHERE id = 1")
    #expect(off.succeeded == 5)
    #expect(off.vanished == 1)
    let error = await #expect(throws: BatchError.self) {
      try await export(.csv, where: "a < 9", recheck: .fail, meanwhile: "UPDATE t SET a = 10")
    }
    #expect(error?.code == .noLongerMatching)
  }

  @Test(arguments: ["0.5", "a * 0.1", "'0.9'", "a", "'1x'", "-0.1"])
  func `a condition selects the same rows in an export as in the fetch`(predicate: String)
    async throws
  {
    try insert([
      [.real(0.25), .null, .null], [.integer(3), .null, .null], [.text("0.5"), .null, .null],
    ])
    let (_, outcomes) = try await export(.ndjson, where: predicate)
    #expect(outcomes.succeeded == outcomes.total)
    #expect(outcomes.succeeded == 3)
  }
}

/// A value of a line of NDJSON.
private enum JSONCell: Decodable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob(String)

  private struct Blob: Decodable {
    let isBase64: Bool
    let encoded: String
    enum CodingKeys: String, CodingKey {
      case isBase64 = "$base64"
      case encoded
    }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .real(value)
    } else if let value = try? container.decode(String.self) {
      self = .text(value)
    } else {
      self = .blob(try container.decode(Blob.self).encoded)
    }
  }

  func isEqual(to value: SQLValue) -> Bool {
    switch (self, value) {
    case (.null, .null): true
    case (.integer(let left), .integer(let right)): left == right
    // `2.0` does not show that it was a REAL.
    case (.integer(let left), .real(let right)): Double(left) == right
    case (.real(let left), .real(let right)): left == right
    case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
    case (.blob(let left), .blob(let right)): left == Data(right).base64EncodedString()
    default: false
    }
  }
}
