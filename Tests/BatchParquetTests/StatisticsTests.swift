import BatchTestSupport
import Testing

@testable import BatchParquet

@Suite struct StatisticsTests {
  private func successor(_ text: String) -> String? {
    Statistics.successor(Array(text.utf8), isText: true).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test func `long bounds of statistics are cut between characters`() {
    let text = Array(String(repeating: "ä", count: 31).utf8) + Array("x漢z".utf8)
    #expect(Statistics.prefix(text, isText: true) == Array(text[..<63]))
    #expect(Statistics.prefix(text, isText: false) == Array(text[..<64]))
  }

  @Test func `the bound of statistics after a text is a text`() {
    #expect(successor("abc") == "abd")
    #expect(successor("a\u{7F}") == "a\u{80}")
    #expect(successor("a\u{D7FF}") == "a\u{E000}")
    #expect(successor("a\u{10FFFF}\u{10FFFF}") == "b")
    #expect(successor("\u{10FFFF}") == nil)
    #expect(Statistics.successor([0x61, 0xFF], isText: true) == nil)
  }

  @Test func `the bound of statistics after bytes is greater than all that begin with them`() {
    #expect(Statistics.successor([1, 2], isText: false) == [1, 3])
    #expect(Statistics.successor([1, 0xFF, 0xFF], isText: false) == [2])
    #expect(Statistics.successor([0xFF, 0xFF], isText: false) == nil)
  }

  @Test func `bytes compare as arrays of numbers`() {
    var random = SeededGenerator(seed: 9)
    for _ in 0..<2000 {
      let bytes = (0..<2).map { _ in
        (0..<Int.random(in: 0...20, using: &random)).map { _ in
          UInt8([0, 1, 255].randomElement(using: &random) ?? 0)
        }
      }
      let isBefore = unsafe bytes[0].withUnsafeBytes { a in
        unsafe bytes[1].withUnsafeBytes { b in unsafe Words.precedes(a, b) }
      }
      #expect(isBefore == bytes[0].lexicographicallyPrecedes(bytes[1]))
    }
  }
}
