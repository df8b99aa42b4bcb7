import BatchTestSupport
import Foundation
import Testing

@Suite struct IdentifierExampleTests {
  static let folder = "Examples/Identifiers"

  /// The examples, by their files.
  static let names: [String] = {
    let files = try? FileManager.default.contentsOfDirectory(
      atPath: "\(Repository.path)/\(folder)"
    )
    return (files ?? []).filter { $0.hasSuffix(".swift") }.map { String($0.dropLast(6)) }.sorted()
  }()

  private func run(
    _ arguments: String...,
    environment: [String: String] = [:]
  ) throws -> BatchProgram.Result {
    try BatchProgram(
      arguments,
      of: "IdentifierExamples",
      in: TemporaryDirectory(),
      environment: environment
    ).wait()
  }

  /// The text with a number in the place of each UUID, the same for the same.
  private func numbered(_ text: String) -> String {
    var numbers: [Substring: Int] = [:]
    return text.replacing(/[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/) { match in
      let number = numbers[match.0] ?? numbers.count + 1
      numbers[match.0] = number
      let digits = String(number)
      return "00000000-0000-0000-0000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }
  }

  @Test(arguments: names)
  func `an example prints the output recorded on its page`(name: String) throws {
    let result = try run(name)
    #expect(result.status == 0)
    #expect(result.errors == "")
    let page = "\(Self.folder)/Output/\(name).txt"
    let output = numbered(result.output)
    if ProcessInfo.processInfo.environment["BATCH_WRITE_PAGES"] == "1" {
      try Data(output.utf8).write(to: URL(fileURLWithPath: "\(Repository.path)/\(page)"))
    }
    #expect(output == (try Repository.text(page)), "record it with BATCH_WRITE_PAGES=1")
  }

  @Test func `the program lists each example file once`() throws {
    let listed = try run().output.split(separator: "\n").map { String($0.prefix { $0 != ":" }) }
    #expect(listed.sorted() == Self.names)
    #expect(!Self.names.isEmpty)
  }

  @Test func `the table of examples lists exactly the example files`() throws {
    let page = try Repository.text("\(Self.folder)/README.md")
    let linked = Set(page.matches(of: /\]\((\w+)\.swift\)/).map { String($0.1) })
    #expect(linked.sorted() == Self.names)
  }

  @Test func `every recorded output belongs to an example`() throws {
    let outputs = try Repository.files(under: "\(Self.folder)/Output", extension: "txt")
    #expect(outputs == Self.names.map { "\(Self.folder)/Output/\($0).txt" })
  }

  @Test func `the debug mode ends the example that uses a context off its queue`() throws {
    let result = try run(
      "ConcurrencyDebugging",
      environment: ["BATCH_CONCURRENCY_DEBUG": "1", "SWIFT_BACKTRACE": "enable=no"]
    )
    #expect(result.status < 0)
    #expect(result.output == "")
  }

  @Test func `the Swift code in README.md comes from the examples`() throws {
    let blocks = try PageExample.all(in: "README.md", language: "swift")
      .filter { !$0.imports.contains("import PackageDescription") }
    #expect(!blocks.isEmpty)
    let sources = try Self.names.map { name in
      compact(try Repository.text("\(Self.folder)/\(name).swift"))
    }
    for block in blocks {
      // What the page has in one piece, the example may have in several.
      let parts = block.code.split(separator: "\n\n").map { compact(String($0)) }
      #expect(
        sources.contains { source in
          parts.allSatisfy(source.contains)
            && block.imports.allSatisfy { source.contains(compact($0)) }
        },
        "\(block.code)"
      )
    }
  }

  /// The code without spaces and line breaks, of which the page has fewer.
  private func compact(_ code: String) -> String { code.filter { !$0.isWhitespace } }

  @Test func `an unknown example name is an error`() throws {
    let result = try run("Nothing")
    #expect(result.status == 64)
    #expect(result.errors == "there is no example Nothing\n")
  }
}
