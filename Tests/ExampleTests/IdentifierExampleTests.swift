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
  func `an example prints what its page of output says`(name: String) throws {
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

  @Test func `the program lists every file that is an example, once`() throws {
    let listed = try run().output.split(separator: "\n").map { String($0.prefix { $0 != ":" }) }
    #expect(listed.sorted() == Self.names)
    #expect(!Self.names.isEmpty)
  }

  @Test func `the table names every example, and no file that is not there`() throws {
    let page = try Repository.text("\(Self.folder)/README.md")
    let linked = Set(page.matches(of: /\]\((\w+)\.swift\)/).map { String($0.1) })
    #expect(linked.sorted() == Self.names)
  }

  @Test func `there is no output of an example that is not there`() throws {
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

  @Test func `what the project's page shows of Swift is code of an example`() throws {
    let blocks = try Repository.text("README.md").matches(
      of: /```swift\n(.*?)```/.dotMatchesNewlines()
    )
    #expect(!blocks.isEmpty)
    let sources = try Self.names.map { name in
      unindented(try Repository.text("\(Self.folder)/\(name).swift"))
    }
    for block in blocks {
      let lines = unindented(String(block.1)).split(separator: "\n")
      let imports = lines.filter { $0.hasPrefix("import ") }
      let code = lines.dropFirst(imports.count).joined(separator: "\n")
      #expect(
        sources.contains { source in
          source.contains(code) && imports.allSatisfy { source.contains("\($0)\n") }
        },
        "\(block.1)"
      )
    }
  }

  /// The lines that are not empty, without the spaces before them.
  private func unindented(_ text: String) -> String {
    text.split(separator: "\n").map { $0.drop { $0 == " " } }.filter { !$0.isEmpty }
      .joined(separator: "\n")
  }

  @Test func `a name that no example has is an error`() throws {
    let result = try run("Nothing")
    #expect(result.status == 64)
    #expect(result.errors == "there is no example Nothing\n")
  }
}
