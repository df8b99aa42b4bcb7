import BatchIdentifiers
import BatchPipeline
import Testing

@Suite struct JSONReaderTests {
  private func read(_ text: String) throws(BatchError) -> JSONValue {
    try JSONReader.read(Array(text.utf8), file: "job.json")
  }

  private func message(_ text: String) -> String {
    do throws(BatchError) {
      _ = try read(text)
      return "no error"
    } catch {
      return error.description
    }
  }

  @Test func `every JSON value and key knows its line and column`() throws {
    let root = try read("{\n  \"a\": 1,\n  \"é\": [true,\n    null], \"🛫\": \"x\" }")
    let members = try #require(root.members)
    #expect(root.position == SourcePosition(line: 1, column: 1))
    #expect(members.map(\.key) == ["a", "é", "🛫"])
    #expect(members.map(\.keyPosition.description) == ["2:3", "3:3", "4:12"])
    #expect(members.map(\.value.position.description) == ["2:8", "3:8", "4:17"])
    guard case .array(let items) = members[1].value.content else {
      Issue.record("no array")
      return
    }
    #expect(items.map(\.position.description) == ["3:9", "4:5"])
  }

  @Test(arguments: [
    ("9223372036854775807", Int64.max), ("-9223372036854775808", Int64.min), ("-0", 0), ("7", 7),
  ])
  func `JSON integers are exact`(text: String, expected: Int64) throws {
    guard case .integer(let value) = try read(text).content else {
      Issue.record("\(text) is no integer")
      return
    }
    #expect(value == expected)
  }

  @Test(arguments: [
    ("1.0", 1.0), ("1e3", 1000), ("-2.5E-1", -0.25), ("9223372036854775808.0", 0x1p63),
  ])
  func `a JSON number with a fraction or an exponent is a real`(text: String, expected: Double)
    throws
  {
    guard case .real(let value) = try read(text).content else {
      Issue.record("\(text) is no real")
      return
    }
    #expect(value == expected)
  }

  @Test func `JSON escapes become the characters they stand for`() throws {
    guard case .string(let text) = try read(#""\"\\\/\b\f\n\r\t\u00e9\ud83d\udeeb\u0000""#).content
    else {
      Issue.record("no string")
      return
    }
    #expect(text == "\"\\/\u{8}\u{C}\n\r\té🛫\0")
  }

  @Test(arguments: [
    ("", "job.json:1:1: the file is empty; expected a JSON object"),
    (" \n ", "job.json:2:2: the file is empty; expected a JSON object"),
    (
      #"{"name": "x" "version": 1}"#,
      #"job.json:1:14: expected ',' or '}' after the value of "name", found '"'"#
    ),
    (
      #"{"a": 1"#,
      #"job.json:1:8: expected ',' or '}' after the value of "a", found the end of the file"#
    ),
    (#"{"a": 1,}"#, "job.json:1:9: expected a value after ',', found '}'; remove the last comma"),
    ("[1, 2,\n]", "job.json:2:1: expected a value after ',', found ']'; remove the last comma"),
    ("[1 2]", "job.json:1:4: expected ',' or ']' after item 1 of the array, found '2'"),
    (#"{"a" 1}"#, #"job.json:1:6: expected ':' after the key "a", found '1'"#),
    (#"{a: 1}"#, "job.json:1:2: expected a key in double quotes, found 'a'"),
    (
      "{\n  // why\n}",
      "job.json:2:3: expected a key in double quotes, found '/'; JSON has no comments"
    ),
    (
      #"{"a": 'x'}"#,
      "job.json:1:7: expected a value, found '''; JSON puts strings into double quotes"
    ),
    (#"{"a": True}"#, #"job.json:1:7: unknown word "True"; write true"#),
    (#"{"a": orders}"#, #"job.json:1:7: unknown word "orders"; put text into double quotes"#),
    ("{} {}", "job.json:1:4: unexpected '{' after the end of the document"),
    ("[01]", "job.json:1:3: a number begins with 0; remove the zero"),
    ("[1.]", "job.json:1:4: expected a digit after the point of a number, found ']'"),
    ("[-]", "job.json:1:3: expected a digit after '-', found ']'"),
    ("[1e999]", "job.json:1:2: the number 1e999 is too large"),
    (
      "[9223372036854775808]",
      "job.json:1:2: the integer 9223372036854775808 does not fit into 64 bits; "
        + "the range is -9223372036854775808 to 9223372036854775807"
    ),
    (
      "[\"a\nb\"]",
      "job.json:1:2: the string is not closed on its line; "
        + "close it with '\"', and write a line break as \\n"
    ),
    (
      "[\"a\u{1}\"]",
      "job.json:1:4: the character U+0001 in a string; "
        + "write a control character as \\u00XX or a tab as \\t"
    ),
    (#"["\d"]"#, #"job.json:1:3: unknown escape: a backslash and 'd'; write a backslash as \\"#),
    (
      #"["\ud83d"]"#,
      "job.json:1:3: half of a surrogate pair; write the character itself, or both halves"
    ),
    (#"["\u+123"]"#, "job.json:1:3: expected four hexadecimal digits after \\u"),
    ("[\"abc", "job.json:1:2: the string is not closed; add '\"'"),
    (
      "\u{FEFF}{}",
      "job.json:1:1: the file begins with a byte order mark; save it as UTF-8 without BOM"
    ),
    (#"{"a": 1, "b": 2, "a": 3}"#, #"job.json:1:18: duplicate key "a"; the first one is at 1:2"#),
    (#"{"ab": 1, "a\u0062": 2}"#, #"job.json:1:11: duplicate key "ab"; the first one is at 1:2"#),
    ("SQLite format 3\0", "job.json:1:1: the file is a SQLite database, not JSON"),
  ])
  func `the error of invalid JSON names place, reason and remedy`(text: String, expected: String) {
    #expect(message(text) == expected)
  }

  @Test func `the error of invalid UTF-8 names its place`() {
    let bytes = Array("{\n \"é\": \"".utf8) + [0xC3, 0x28]
    let error = #expect(throws: BatchError.self) { try JSONReader.read(bytes, file: "f") }
    #expect(error?.description == "f:2:8: invalid UTF-8; save it as UTF-8")
  }

  @Test func `the depth, size and number of JSON values are bounded`() throws {
    let deep = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
    _ = try read(deep)
    #expect(message("[\(deep)]").contains("more than 64 arrays and objects inside one another"))
    #expect(message(String(repeating: "[", count: 1_000_000)).contains("more than 64"))
    let error = #expect(throws: BatchError.self) {
      try JSONReader.read([UInt8](repeating: 0x20, count: JSONReader.byteLimit + 1), file: "f")
    }
    #expect(error?.message == "the file has more than 16,777,216 bytes")
    let values = "[" + String(repeating: "0,", count: JSONReader.valueLimit) + "0]"
    #expect(message(values).contains("more than 1,000,000 values"))
  }

  @Test func `an error stays on one line, whatever it quotes`() {
    let text = message(#"{"a\n\u001b[31m": 1, "a\n\u001b[31m": 2}"#)
    #expect(text.contains(#""a\n\u{1b}[31m""#))
    #expect(!text.contains("\n") && !text.contains("\u{1b}"))
  }
}
