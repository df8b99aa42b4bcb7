import BatchTestSupport
import Foundation
import Testing

/// Recipes that are killed, and then repeated as they are written.
@Suite struct KilledRecipeTests {
  @Test(.timeLimit(.minutes(1)))
  func `the recipe that exports changed rows misses none if it is killed and repeated`() throws {
    let page = try Walkthrough(page: "Documentation/Recipes.md")
    let section = try #require(page.sections.first { $0.title == "Export what changed" })
    let commands = section.commands.map(\.text)
    let first = try #require(commands.firstIndex { $0.hasSuffix("> since.next") })
    let directory = try TemporaryDirectory()
    for file in section.files {
      // A file holds the run until it is killed.
      let text = file.text.replacing(
        #""version": 1,"#,
        with: #""version": 1, "throttle": { "flagFile": "hold" },"#
      )
      try directory.write(file.name == "changes.json" ? text : file.text, to: file.name)
    }
    try writeCommand("date", "head -n 1 times; sed -i 1d times", in: directory)
    try directory.write(
      "2025-06-30T00:00:01Z\n2025-06-30T00:00:09Z\n2025-06-30T00:00:20Z\n",
      to: "times"
    )
    // The first run is killed with its shell once it has its list.
    try writeCommand(
      "batch",
      """
      test -e hold || exec '\(BatchProgram.path)' "$@"
      '\(BatchProgram.path)' "$@" 2>said &
      until grep -q selected said; do :; done
      kill -9 $! $PPID
      """,
      in: directory
    )
    try shell(commands[..<first], in: directory)
    try directory.write("", to: "hold")
    try shell(commands[first...], in: directory)
    try directory.write("UPDATE orders SET changed = '2025-06-30T00:00:05Z' WHERE id = 5;", to: "q")
    try shell(["sqlite3 shop.db < q", "rm hold"], in: directory)
    var exported: Set<Substring> = []
    for _ in 1...2 {
      try shell(commands[first...], in: directory)
      let csv = String(decoding: try directory.read("changes.csv"), as: UTF8.self)
      exported.formUnion(csv.split(whereSeparator: \.isNewline).map { $0.prefix { $0 != "," } })
    }
    #expect(exported.contains("19980") && exported.contains("5"), "\(exported.sorted())")
  }

  private func writeCommand(
    _ name: String,
    _ script: String,
    in directory: TemporaryDirectory
  ) throws {
    try directory.write("#!/bin/sh\n\(script)\n", to: name)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755],
      ofItemAtPath: directory.file(name)
    )
  }

  private func shell(_ commands: some Sequence<String>, in directory: TemporaryDirectory) throws {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    _ = try BatchProgram(
      ["-c", commands.joined(separator: "\n")],
      of: "/bin/sh",
      in: directory,
      environment: ["PATH": "\(directory.path):\(path)"]
    ).wait()
  }
}
