import BatchTestSupport
import Foundation

/// A piece of code on a page.
///
/// What is to be tested stands between lines of backticks with nothing but the language behind the first:
/// code of other libraries says whose it is, as in `swift SwiftData`.
struct PageExample: Sendable {
  let page: String
  /// Where on the page it begins.
  let line: Int
  /// The lines that import modules.
  let imports: [String]
  /// The other lines.
  let code: String

  /// Whether the trait `Macros` has to be on.
  var usesMacros: Bool { imports.contains("import BatchMacros") }

  /// The pages that have examples.
  static func pages() throws -> [String] {
    try ["README.md"] + Repository.files(under: "Documentation", extension: "md")
  }

  /// The examples of a page in a language.
  static func all(in page: String, language: String) throws -> [PageExample] {
    var examples: [PageExample] = []
    var open: (line: Int, lines: [Substring])?
    let lines = try Repository.text(page).split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      if let (start, found) = open {
        guard line == "```" else {
          open = (start, found + [line])
          continue
        }
        let imports = found.filter { $0.hasPrefix("import ") }
        examples.append(
          PageExample(
            page: page,
            line: start,
            imports: imports.map(String.init),
            code: found.filter { !$0.hasPrefix("import ") }.joined(separator: "\n")
              .trimmingCharacters(in: .newlines)
          )
        )
        open = nil
      } else if line == "```\(language)" {
        open = (index + 2, [])
      }
    }
    return examples
  }

  /// All examples in a language.
  static func all(language: String) throws -> [PageExample] {
    try pages().flatMap { try all(in: $0, language: language) }
  }
}
