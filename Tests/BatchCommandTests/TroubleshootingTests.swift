import BatchTestSupport
import Testing

/// Holds the page about error codes to the codes that there are.
@Suite struct TroubleshootingTests {
  private let page: String

  init() throws {
    page = try Repository.text("Documentation/Troubleshooting.md")
  }

  /// The raw values of all codes, as the sources declare them.
  private static func codes() throws -> Set<String> {
    var codes: Set<String> = []
    for name in try Repository.files(under: "Sources", extension: "swift") {
      let text = try Repository.text(name)
      guard text.contains("extension BatchError.Code {") else { continue }
      for match in text.matches(of: /Self\(\s*rawValue:\s*"(\w+)"\s*\)/) {
        codes.insert(String(match.output.1))
      }
    }
    return codes
  }

  @Test func `every error code has one entry in Troubleshooting.md and vice versa`() throws {
    let codes = try Self.codes()
    #expect(codes.count > 50)
    let entries = page.matches(of: /(?m)^### `(\w+)`$/).map { String($0.output.1) }
    for code in codes.sorted() { #expect(entries.contains(code), "\(code) has no entry") }
    for entry in entries { #expect(codes.contains(entry), "\(entry) is no code") }
    #expect(Set(entries).count == entries.count)
  }

  @Test func `every entry in Troubleshooting.md begins with a sample of the message`() {
    for entry in page.split(separator: "\n### ").dropFirst() {
      let lines = entry.split(separator: "\n")
      #expect(lines.dropFirst().first == "```", "\(lines.first ?? "")")
      #expect(lines.count > 4, "\(lines.first ?? "")")
    }
  }
}
