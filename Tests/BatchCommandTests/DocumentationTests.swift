import BatchTestSupport
import Foundation
import Testing

/// Holds the pages about the command line to the program.
@Suite struct DocumentationTests {
  /// The parts used here of the output of swift-argument-parser's `--experimental-dump-help`.
  struct Help: Decodable {
    struct Command: Decodable {
      struct Argument: Decodable {
        struct Name: Decodable {
          let kind: String
          let name: String
        }

        let kind: String
        let names: [Name]?
        let abstract: String?
      }

      var commandName: String
      let abstract: String?
      let subcommands: [Command]?
      let arguments: [Argument]?
    }

    let command: Command
  }

  static let generated: Set<String> = ["help", "version"]

  static func commands() throws -> [Help.Command] {
    let directory = try TemporaryDirectory()
    let result = try BatchProgram.run("--experimental-dump-help", in: directory)
    let help = try JSONDecoder().decode(Help.self, from: Data(result.output.utf8))
    return below(help.command, prefix: "batch")
  }

  /// The commands below one, with the whole of their names.
  private static func below(_ command: Help.Command, prefix: String) -> [Help.Command] {
    (command.subcommands ?? []).filter { !generated.contains($0.commandName) }
      .flatMap { subcommand in
        var named = subcommand
        named.commandName = "\(prefix) \(subcommand.commandName)"
        return [named] + below(subcommand, prefix: named.commandName)
      }
  }

  @Test func `every command and option has help and an entry in CommandLine.md`() throws {
    let page = try Repository.text("Documentation/CommandLine.md")
    for command in try Self.commands() {
      #expect(command.abstract?.isEmpty == false, "\(command.commandName) has no help")
      #expect(page.contains("`\(command.commandName) "), "\(command.commandName) is missing")
      for argument in command.arguments ?? [] {
        for name in argument.names ?? [] where !Self.generated.contains(name.name) {
          #expect(page.contains("--\(name.name)"), "\(command.commandName) --\(name.name)")
          #expect(argument.abstract?.isEmpty == false, "--\(name.name) has no help")
        }
      }
    }
  }

  @Test func `every option in CommandLine.md belongs to the program`() throws {
    let page = try Repository.text("Documentation/CommandLine.md")
    let options = Set(
      try Self.commands().flatMap { $0.arguments ?? [] }.flatMap { $0.names ?? [] }.map(\.name)
    ).union(["generate-completion-script"])
    for match in page.matches(of: /--([a-z][a-z-]+)/) {
      #expect(options.contains(String(match.output.1)), "--\(match.output.1)")
    }
  }

  @Test func `every field of a summary is in CommandLine.md`() throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(10, in: directory)
    try directory.write(RunCommandTests.increment, to: "job.json")
    try BatchProgram.run("run", "job.json", in: directory)
    let page = try Repository.text("Documentation/CommandLine.md")
    for arguments in [
      ["status", "job.json"], ["plan", "job.json"], ["inspect", "job.batch"],
      ["schema", "test.db"],
    ] {
      let result = try BatchProgram(arguments + ["--json"], in: directory).wait()
      let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
      let fields = try #require(object as? [String: Any])
      for field in fields.keys { #expect(page.contains("`\(field)`"), "\(arguments): \(field)") }
    }
  }

  @Test func `every exit status is in CommandLine.md and in the help`() throws {
    let page = try Repository.text("Documentation/CommandLine.md")
    let directory = try TemporaryDirectory()
    let help = try BatchProgram.run("--help", in: directory).output
    for status in [0, 1, 2, 3, 4, 5, 6, 7, 8, 64] {
      #expect(page.contains("| \(status) | "))
      #expect(help.contains("\(status) "))
    }
  }

  @Test func `the help of each command fits on a screen`() throws {
    let directory = try TemporaryDirectory()
    for command in try ["batch"] + Self.commands().map(\.commandName) {
      let words = command.split(separator: " ").dropFirst().map(String.init)
      let help = try BatchProgram(
        ["help"] + words,
        in: directory,
        environment: ["COLUMNS": "80"]
      ).wait()
      let lines = help.output.split(separator: "\n", omittingEmptySubsequences: false)
      #expect(help.status == 0 && lines.count <= 41, "\(command): \(lines.count) lines")
      #expect(lines.filter { $0.count > 80 } == [], "\(command)")
    }
  }
}
