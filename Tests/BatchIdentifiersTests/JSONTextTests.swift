import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

/// JSON that is copied into a line, judged by Foundation's reader.
@Suite(.timeLimit(.minutes(1))) struct JSONTextTests {
  /// The text without white space between tokens; nil if it is not JSON.
  private static func copy(_ bytes: [UInt8]) -> String? {
    var line = Array("kept ".utf8)
    let isJSON = JSONText.append(bytes.span, to: &line)
    #expect(line.starts(with: "kept ".utf8) && (isJSON || line.count == 5))
    return isJSON ? String(decoding: line.dropFirst(5), as: UTF8.self) : nil
  }

  private static func copy(_ text: String) -> String? { copy(Array(text.utf8)) }

  @Test(arguments: [
    ("{}", "{}"), (" [ ] ", "[]"), ("null", "null"), ("\n true\r\n", "true"), ("-0", "-0"),
    ("[1.50e+10, -2E-3 ,0.0]", "[1.50e+10,-2E-3,0.0]"),
    (#"{"a" : {"b":[ {}, [ [] ] ]}, "a":1}"#, #"{"a":{"b":[{},[[]]]},"a":1}"#),
    (#"" \" \\ \/ \u00e9\ud800  é ""#, #"" \" \\ \/ \u00e9\ud800  é ""#),
    ("12345678901234567890.123456789", "12345678901234567890.123456789"),
  ])
  func `a value keeps its tokens and loses the space between them`(text: String, copied: String) {
    #expect(Self.copy(text) == copied)
  }

  @Test(arguments: [
    "", " ", "nul", "nulll", "True", "01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1", "NaN",
    "Infinity", "[", "]", "[1", "[1,]", "[,1]", "[1 2]", "[1]]", "{", "}", "{,}", "{1:2}",
    #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{"a":1 "b":2}"#, #"{"a":1]"#, #"["a":1]"#, "'a'",
    #"""#, #""a"#, #""\""#, #""\x""#, #""\u00g0""#, #""\u12""#, "\"\n\"", "\"\t\"", "1 2", "{} {}",
    "// a\n1", "\u{feff}1", "1\u{0}", "\u{a0}1", "[1}", "{\"a\":1}}",
  ])
  func `what is no JSON is refused`(text: String) { #expect(Self.copy(text) == nil) }

  @Test func `text that is not UTF-8 is no JSON`() {
    #expect(Self.copy([0x22, 0xff, 0x22]) == nil)
  }

  @Test func `nesting has no limit but memory`() {
    let deep = String(repeating: #"[{"a":"#, count: 200_000)
    let ends = String(repeating: "}]", count: 200_000)
    #expect(Self.copy(deep + "1" + ends) == deep + "1" + ends)
    #expect(Self.copy(deep + "1" + ends.dropLast()) == nil)
  }

  private static func value(_ depth: Int, _ random: inout SeededGenerator) -> String {
    func space() -> String { ["", "", " ", "\n\t "].randomElement(using: &random) ?? "" }
    func list(_ item: () -> String) -> String {
      (0..<Int.random(in: 0...3, using: &random)).map { _ in space() + item() + space() }
        .joined(separator: ",")
    }
    func string() -> String {
      let parts = ["a", "é", "\\n", "\\\"", "\\u0041", " ", "[", "}", ":"]
      return "\""
        + (0..<Int.random(in: 0...3, using: &random)).map { _ in
          parts.randomElement(using: &random) ?? ""
        }.joined() + "\""
    }
    switch Int.random(in: 0..<(depth > 4 ? 3 : 6), using: &random) {
    case 0: return ["0", "-1", "1.5", "2e3", "-0.1E-2"].randomElement(using: &random) ?? "0"
    case 1: return ["null", "true", "false"].randomElement(using: &random) ?? "null"
    case 2: return string()
    case 3, 4: return "[" + list { value(depth + 1, &random) } + space() + "]"
    default:
      return "{" + list { string() + space() + ":" + space() + value(depth + 1, &random) } + "}"
    }
  }

  @Test(arguments: 0..<400 as Range<UInt64>)
  func `a random text and its damaged copies are taken for what they are`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let text = Self.value(0, &random)
    let told: Comment = "seed \(seed): \(text)"
    let copied = try #require(Self.copy(text), told)
    func parsed(_ bytes: [UInt8]) -> Data? {
      let object = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
      return object.flatMap {
        try? JSONSerialization.data(withJSONObject: $0, options: [.fragmentsAllowed, .sortedKeys])
      }
    }
    #expect(parsed(Array(copied.utf8)) == parsed(Array(text.utf8)), told)
    #expect(!copied.utf8.contains(0x0a), told)
    for _ in 0..<20 {
      var bytes = Array(text.utf8)
      let place = Int.random(in: bytes.indices, using: &random)
      let byte = Array(#"[]{}:,"0-.eEtn \u"#.utf8).randomElement(using: &random) ?? 0
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes.remove(at: place)
      case 1: bytes.insert(byte, at: place)
      default: bytes[place] = byte
      }
      let damaged = String(decoding: bytes, as: UTF8.self)
      // Foundation accepts a comma before the end.
      let tokens = damaged.filter { !" \t\n".contains($0) }
      if tokens.contains(",]") || tokens.contains(",}") { continue }
      #expect((Self.copy(bytes) != nil) == (parsed(bytes) != nil), "\(damaged) of \(told)")
    }
  }
}
