import BatchTestSupport
import Foundation
import Testing

/// House rules that neither the compiler nor the formatter checks.
@Suite struct TidyTests {
  static func sources() throws -> [String] {
    try Repository.files(under: "Sources", extension: "swift")
      + Repository.files(under: "Tests", extension: "swift")
  }

  @Test func `no source file has more than 600 lines`() throws {
    for name in try Self.sources() {
      let lines = try Repository.text(name).split(separator: "\n", omittingEmptySubsequences: false)
      #expect(lines.count <= 600, "\(name) has \(lines.count) lines")
    }
  }

  @Test func `only the folder BatchSQLite/SQLite calls functions of SQLite`() throws {
    for name in try Repository.files(under: "Sources", extension: "swift")
    where !name.hasPrefix("Sources/BatchSQLite/SQLite/") {
      #expect(try !Repository.text(name).contains("sqlite3_"), "\(name)")
    }
  }

  @Test func `only the folder BatchPostgres/Connection calls functions of libpq`() throws {
    for name in try Repository.files(under: "Sources", extension: "swift")
    where !name.hasPrefix("Sources/BatchPostgres/Connection/") {
      #expect(try !Repository.text(name).contains(/\bPQ[a-z]/), "\(name)")
    }
  }

  @Test func `every @unchecked Sendable and nonisolated(unsafe) has a comment nearby`() throws {
    for name in try Repository.files(under: "Sources", extension: "swift") {
      let lines = try Repository.text(name).split(
        separator: "\n",
        omittingEmptySubsequences: false
      )
      for (index, line) in lines.enumerated()
      where line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)") {
        let around = lines[max(0, index - 4)...min(lines.count - 1, index + 4)]
        #expect(around.contains { $0.contains("// ") }, "\(name):\(index + 1)")
      }
    }
  }

  @Test func `only BatchPlatform imports Foundation and the C library`() throws {
    // Elsewhere, an import of all of Foundation would link 9 MB of data for all languages.
    for name in try Repository.files(under: "Sources", extension: "swift")
    where !name.hasPrefix("Sources/BatchPlatform/") {
      let other = try Repository.text(name).firstMatch(
        of:
          /(?m)^ *(?:public |package |internal )?import (Foundation|FoundationEssentials|Glibc|Musl|Darwin)$/
      )
      #expect(other == nil, "\(name)")
    }
  }

  @Test func `the README is short, and the changelog has its form`() throws {
    let readme = try Repository.text("README.md").split(
      separator: "\n",
      omittingEmptySubsequences: false
    )
    #expect(readme.count <= 150)
    let changelog = try Repository.text("CHANGELOG.md")
    #expect(changelog.hasPrefix("# Changelog\n"))
    let releases = changelog.split(separator: "\n").filter { $0.hasPrefix("## ") }
    #expect(releases.first == "## [Unreleased]")
    for release in releases.dropFirst() {
      #expect(release.wholeMatch(of: /## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}/) != nil)
    }
    let kinds: Set = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    for heading in changelog.split(separator: "\n") where heading.hasPrefix("### ") {
      #expect(kinds.contains(String(heading.dropFirst(4))), "\(heading)")
    }
  }

  @Test func `links between the pages lead to existing targets`() throws {
    let pages =
      ["README.md", "CONTRIBUTING.md", "Examples/Flights/README.md"]
      + (try Repository.files(under: "Documentation", extension: "md"))
    for page in pages {
      let folder = URL(fileURLWithPath: "\(Repository.path)/\(page)").deletingLastPathComponent()
      for match in try Repository.text(page).matches(of: /\]\(([^)#:]+)\)/) {
        let target = folder.appendingPathComponent(String(match.output.1)).path
        #expect(FileManager.default.fileExists(atPath: target), "\(page): \(match.output.1)")
      }
    }
  }
}
